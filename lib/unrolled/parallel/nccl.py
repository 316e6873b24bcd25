"""Ranks as processes, one a GPU, that talk through NCCL: CuPy's `cupy.cuda.nccl`.

Collectives run on the current stream, so they need no wait, and `all_reduce` is one launch that a CUDA graph can hold.
`start_all_reduce` runs on a stream of its own, beside what the current one computes. Each pair of ranks has, for each
direction, a communicator and a stream: a message waits for its receiver there, and nothing else waits for it.

NCCL itself hangs where ranks disagree, die or freeze. So the first call of each kind, shape and dtype is compared
through the host, which waits for all ranks then, also in `start_all_reduce`; and a thread watches: what
waits longer than `timeout` seconds ends the process, by name.

That is all that is compared: it costs nothing in the steps of a training, whose calls are those of its first step.
Ranks that later disagree in the order of calls that all have made before get no MismatchError. Where NCCL then waits,
they end by the watch, which names where; where sizes happen to fit, they get each other's numbers.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np

from unrolled.device import Array
from unrolled.parallel.calls import Call, from_note, place
from unrolled.parallel.communicator import Communicator, Pending
from unrolled.parallel.errors import MismatchError, NoEngineError, RankError
from unrolled.parallel.nccl_watch import Watch
from unrolled.parallel.packing import failure_of
from unrolled.parallel.store import Store

DTYPES = ("float16", "float32", "float64", "int8", "uint8", "int32", "uint32", "int64", "uint64")


def load() -> tuple[Any, Any]:
    """Return CuPy and its NCCL module. Raises NoEngineError where one of them or a GPU is missing."""
    try:
        import cupy
    except ImportError as error:
        raise NoEngineError(
            f'engine "nccl" needs CuPy ({error}): pip install -e ".[gpu]" on a machine with GPUs'
        ) from None
    try:
        from cupy.cuda import nccl
    except ImportError as error:
        raise NoEngineError(f'engine "nccl" needs NCCL, which this CuPy does not find ({error})') from None
    if not getattr(nccl, "available", False):
        raise NoEngineError(
            f'engine "nccl" needs NCCL, which CuPy {cupy.__version__} does not find: pip install nvidia-nccl'
        )
    return cupy, nccl


def gpus() -> int:
    """Return how many GPUs this machine shows. Raises NoEngineError where CuPy or NCCL is missing."""
    cupy, _ = load()
    try:
        return int(cupy.cuda.runtime.getDeviceCount())
    except cupy.cuda.runtime.CUDARuntimeError:
        return 0


class NcclCommunicator(Communicator):
    """The group of `size` ranks, seen from one that drives the current GPU. Arrays are CuPy's, of `DTYPES`.

    `store` is this rank's door to the others. The first call of each kind, shape and dtype is compared, and no later
    one. Use it as a context, or `close` it: what was sent is delivered then. A send or receive is in no CUDA
    graph.
    """

    engine = "nccl"

    def __init__(self, rank: int, size: int, store: Store, timeout: float = 30.0) -> None:
        self.rank, self.size, self.timeout = rank, size, timeout
        self.patience = 2 * timeout  # of the host: the watch ends it before, and says where all others wait
        self._cupy, self._nccl = load()
        self._device = self._cupy.cuda.Device().id  # CuPy asks CUDA for it otherwise, at each call
        self._store = store
        self._types = {np.dtype(name): getattr(self._nccl, f"NCCL_{name.upper()}") for name in DTYPES}
        self._known: set[Any] = set()
        self._compared = 0
        self._channels: dict[tuple[int, int], Channel] = {}
        self._under: Any = None  # the event that ends what runs beside the current stream
        self._watch = Watch(self._cupy, store, timeout)
        with self._watch.host("the start of NCCL"):
            self._gather()
            self._comm = self.connect("all", size, rank)
        self._watch.communicator = self._comm
        self._beside = self._cupy.cuda.Stream(non_blocking=True)
        self._one = self._cupy.zeros(1, dtype=np.float32)

    def connect(self, name: str, size: int, rank: int) -> Any:
        """Return a communicator of NCCL's between `size` ranks, of which this is number `rank`; waits for them."""
        identity = self._nccl.get_unique_id()
        kind = type(identity)  # bytes from CuPy 14 on, a tuple before
        if rank == 0:
            self._store.put(f"id/{name}", list(identity))
        else:
            identity = self._store.get(f"id/{name}", self.patience)
            if identity is None:
                raise RankError(f"rank {self.rank} waited {self.patience:g} s for another rank ({name})")
        return self._nccl.NcclCommunicator(size, kind(identity), rank)

    def type_of(self, x: Array) -> int:
        """Return NCCL's number for the dtype of x. Raises TypeError for what NCCL cannot carry."""
        if not isinstance(x, self._cupy.ndarray):
            raise TypeError(f"x is a {type(x).__module__} array; engine nccl carries CuPy's: cupy.asarray(x)")
        if x.dtype not in self._types:
            raise TypeError(f"x is of dtype {x.dtype}; NCCL carries {', '.join(DTYPES)}")
        return int(self._types[x.dtype])

    # collectives

    def _collective(self, kind: str, x: Array, out: Array, root: int = -1) -> Array:
        dtype, call = self._begin(kind if root < 0 else f"{kind} from rank {root}", x)
        stream = self._current()
        arrays, add = (x.data.ptr, out.data.ptr), self._nccl.NCCL_SUM
        if kind == "all_reduce":
            self._comm.allReduce(*arrays, x.size, dtype, add, stream.ptr)
        elif kind == "reduce_scatter":
            self._comm.reduceScatter(*arrays, out.size, dtype, add, stream.ptr)
        elif kind == "all_gather":
            self._comm.allGather(*arrays, x.size, dtype, stream.ptr)
        else:
            self._comm.broadcast(*arrays, x.size, dtype, root, stream.ptr)
        self._watch.issued = stream, call
        return out

    def _prepare_all_reduce(self, x: Array, out: Array) -> Callable[[], Array]:
        dtype, call = self._begin("all_reduce", x)
        current, all_reduce = self._cupy.cuda.get_current_stream, self._comm.allReduce
        device, watch = self._device, self._watch
        arguments = x.data.ptr, out.data.ptr, x.size, dtype, self._nccl.NCCL_SUM

        def prepared(x: Array = x) -> Array:  # keeps x, whose address NCCL has
            stream = current(device) if self._under is None else self._current()
            all_reduce(*arguments, stream.ptr)
            watch.issued = stream, call
            return out

        return prepared

    def _start_all_reduce(self, x: Array, out: Array) -> Pending:
        dtype, call = self._begin("all_reduce", x)
        stream = self._beside
        stream.wait_event(self._cupy.cuda.get_current_stream().record())
        self._comm.allReduce(x.data.ptr, out.data.ptr, x.size, dtype, self._nccl.NCCL_SUM, stream.ptr)
        self._under = stream.record(self._cupy.cuda.Event(disable_timing=True))
        self._watch.issued = stream, call
        return NcclPending(self, x, out, self._under)

    def _barrier(self) -> None:
        with self._watch.host("barrier"):
            dtype, _ = self._begin("barrier", self._one)
            stream = self._current()
            one = self._one.data.ptr
            self._comm.allReduce(one, one, 1, dtype, self._nccl.NCCL_MAX, stream.ptr)
            stream.synchronize()

    # messages

    def _send(self, x: Array, to: int) -> None:
        self._channel(self.rank, to).send(x, self._call("send", x))

    def _receive(self, x: Array, source: int) -> None:
        self._channel(source, self.rank).receive(x, self._call("receive", x))

    def _channel(self, source: int, to: int) -> Channel:
        if (source, to) not in self._channels:
            self._channels[source, to] = Channel(self, source, to)
        return self._channels[source, to]

    # the end

    def close(self) -> None:
        """Deliver what was sent, and leave the group. Raises RankError for what nobody receives in time."""
        for channel in self._channels.values():
            channel.close()
        self._cupy.cuda.get_current_stream().synchronize()
        self._beside.synchronize()
        self._watch.close()
        self._store.leave()
        self._comm.destroy()

    def fail(self, error: BaseException) -> None:
        """Tell all other ranks that this one ends by an error."""
        self._watch.close()
        self._store.fail(failure_of(self.rank, error))

    # what all collectives begin with

    def _begin(self, name: str, x: Array) -> tuple[int, Call]:
        """Return NCCL's number for the dtype of x, and what is called, compared with the others if it is new."""
        dtype, call = self.type_of(x), self._call(name, x)
        if call[:3] not in self._known:
            self._known.add(call[:3])
            self._compare(call)
        return dtype, call

    def _call(self, name: str, x: Array) -> Call:
        return Call(name, x.shape, x.dtype, place())

    def _current(self) -> Any:
        """The current stream, made to wait for what runs beside it: collectives keep their order."""
        stream = self._cupy.cuda.get_current_stream(self._device)
        if self._under is not None:
            stream.wait_event(self._under)
            self._under = None
        return stream

    def _gather(self) -> None:
        """Wait until all ranks are there."""
        self._store.put(f"here/{self.rank}", True)
        end = time.monotonic() + self.timeout
        for rank in range(self.size):
            if self._store.get(f"here/{rank}", max(0.0, end - time.monotonic())) is None:
                raise RankError(
                    f"rank {rank} is not there after {self.timeout:g} s: were all {self.size} ranks started?"
                )

    def _compare(self, call: Call) -> None:
        """Raise MismatchError unless all ranks call the same. Each compares its n-th new call with theirs."""
        number, self._compared = self._compared, self._compared + 1
        self._store.put(f"call/{number}/{self.rank}", call.note())
        for rank in range(self.size):
            with self._watch.host(str(call)):
                theirs = self._store.get(f"call/{number}/{rank}", self.patience)
            if theirs is None:
                raise RankError(
                    f"rank {self.rank} waits in {call}; rank {rank} has called nothing new for {self.timeout:g} s"
                )
            other = from_note(theirs)
            if other[:3] != call[:3]:
                raise MismatchError(f"rank {self.rank} calls {call}; rank {rank} calls {other}")


class NcclPending(Pending):
    """An all-reduce on a stream of its own."""

    def __init__(self, comm: NcclCommunicator, x: Array, out: Array, done: Any) -> None:
        self._comm, self._x, self._out, self._done = comm, x, out, done

    def wait(self) -> Array:
        """Let the current stream wait; the host does not."""
        if self._done is not None:
            self._comm._cupy.cuda.get_current_stream().wait_event(self._done)
            if self._comm._under is self._done:
                self._comm._under = None
            self._x = self._done = None
        return self._out


class Channel:
    """The messages from one rank to another, in order. NCCL connects both at the first one.

    The sender's side works in a thread: to connect, NCCL waits for the receiver, and the sender must not.
    """

    def __init__(self, comm: NcclCommunicator, source: int, to: int) -> None:
        self.name = f"{source}/{to}"
        self.to, self.sends = to, comm.rank == source
        self._owner, self._cupy, self._store, self._watch = comm, comm._cupy, comm._store, comm._watch
        self._device = self._cupy.cuda.Device()
        self._stream = self._cupy.cuda.Stream(non_blocking=True)
        self._comm: Any = None
        self._count = 0
        self._known: set[Any] = set()
        self._under_way: deque[tuple[Future[Any], Array]] = deque()
        self._thread = ThreadPoolExecutor(1) if self.sends else None

    def send(self, x: Array, call: Call) -> None:
        """Copy x, and let the thread send the copy."""
        kind = self._owner.type_of(x)
        while self._under_way and self._under_way[0][0].done() and self._under_way[0][0].result().done:
            self._under_way.popleft()
        copy = x.copy()
        copied = self._cupy.cuda.get_current_stream().record()
        assert self._thread is not None
        self._under_way.append((self._thread.submit(self._issue, copy, kind, copied, call), copy))

    def receive(self, x: Array, call: Call) -> None:
        """Let the current stream wait for the next message, which fills x."""
        kind = self._owner.type_of(x)
        with self._watch.host(str(call)):
            self._connect(1)
            self._compare(call)
            current = self._cupy.cuda.get_current_stream()
            self._stream.wait_event(current.record())
            self._comm.recv(x.data.ptr, x.size, kind, 0, self._stream.ptr)
        current.wait_event(self._stream.record(self._cupy.cuda.Event(disable_timing=True)))
        self._watch.issued = self._stream, call

    def close(self) -> None:
        """Wait until all that was sent is received."""
        for number, (sent, _) in enumerate(self._under_way):
            with self._watch.host(f"the end, for rank {self.to} to receive what was sent to it"):
                sent.result().synchronize()
            self._under_way[number] = (sent, None)
        if self._thread is not None:
            self._thread.shutdown()
        self._stream.synchronize()

    def _issue(self, copy: Array, kind: int, copied: Any, call: Call) -> Any:
        """In the thread: send, and return the event after which the copy is no longer needed."""
        self._device.use()
        self._connect(0)
        self._compare(call)
        self._stream.wait_event(copied)
        self._comm.send(copy.data.ptr, copy.size, kind, 1, self._stream.ptr)
        return self._stream.record(self._cupy.cuda.Event(disable_timing=True))

    def _connect(self, end: int) -> None:
        if self._comm is None:
            self._comm = self._owner.connect(self.name, 2, end)

    def _compare(self, call: Call) -> None:
        """Compare a message's first shape and dtype of each kind: the sender leaves a note, the receiver reads it."""
        self._count += 1
        if (call.shape, call.dtype) in self._known:
            return
        self._known.add((call.shape, call.dtype))
        note = f"message/{self.name}/{self._count}"
        if self.sends:
            self._store.put(note, call.note())
            return
        theirs = self._store.get(note, self._owner.timeout / 2)
        if theirs is None or from_note(theirs)[1:3] != call[1:3]:
            sent = "sends another shape or dtype" if theirs is None else f"calls {from_note(theirs)}"
            raise MismatchError(f"rank {self._owner.rank} calls {call}; rank {self.name.split('/')[0]} {sent}")
