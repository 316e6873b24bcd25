"""Stream capture and CUDA graphs: what a capturing stream is given is kept, and done at each launch of the graph.

The rules are CUDA's, and the errors those of CuPy. Three things leave a capture as it was, since CuPy itself refuses
them before CUDA sees them: a call of cuBLAS, one of cuRAND, and a copy from or to the host. What CUDA refuses makes the
capture invalid, and its end raises. By CUDA's default mode the pool cannot grow in a capture. CuPy's own default, the
relaxed mode, would let it grow; here that has to be asked for, because a step that is captured makes no arrays.

A graph keeps the memory that it works on: no other array gets it while the graph lives. CuPy's pool promises that only
for arrays that still live.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from unrolled.simgpu.command import CUDARuntimeError, InvalidCommandError, Options, View
from unrolled.simgpu.kernel_report import KernelReport
from unrolled.simgpu.lockstep.faults import UnsupportedError
from unrolled.simgpu.ordering import Line, Touches
from unrolled.simgpu.timeline import NON_BLOCKING

if TYPE_CHECKING:
    from unrolled.simgpu.pool import Pool

RELAXED = 2
"""cudaStreamCaptureModeRelaxed; 0 is the global mode, 1 that of a thread."""
ORIGIN = 0
"""The lane of a graph that is the stream on which its capture began."""
NODES = 20_000
"""Most nodes of one graph."""
GRAPHS = 1000
"""Most graphs that live at a time."""
COPIES, LIBRARIES = ("H2D", "D2H"), ("cuBLAS", "cuRAND")
"""What CuPy refuses in a capture, by the names in its messages."""
_WORDS = {
    "StreamCaptureUnsupported": "operation not permitted when stream is capturing",
    "StreamCaptureInvalidated": "operation failed due to a previous error during capture",
    "StreamCaptureMerge": "operation would result in a merge of separate capture sequences",
    "StreamCaptureUnmatched": "capture was not ended in the same stream as it began",
    "StreamCaptureUnjoined": "capturing stream has unjoined work",
    "StreamCaptureIsolation": "dependency created on uncaptured work in another stream",
    "StreamCaptureImplicit": "operation would make the legacy stream depend on a capturing blocking stream",
    "CapturedEvent": "operation not permitted on an event last recorded in a capturing stream",
    "IllegalState": "the operation cannot be performed in the present state",
    "InvalidResourceHandle": "invalid resource handle",
}
_INVALID = "the stream was capturing, but an error has invalidated the capture sequence"


@dataclass(slots=True)
class Done:
    """What a kernel took: its seconds, those if it had the whole GPU, bytes read and written, and operations."""

    seconds: float
    work: float
    figures: tuple[int, int, int]
    kind: tuple[tuple[int, ...], str] = ((), "")
    """Shape and dtype of what it writes."""
    report: KernelReport | None = None
    touches: Touches = ()


@dataclass(slots=True)
class Work:
    """A kernel with all that it needs: `run` does it, on the values that lie in its arrays then."""

    name: str
    run: Callable[[], Done]
    where: str | None = None
    line: Line | None = None
    """The program's; `where` may be one of the library."""


@dataclass(frozen=True)
class Node:
    """What a lane does: it computes or, where there is no work, records an event or waits for it."""

    lane: int
    work: Work | None = None
    event: int = 0
    waits: bool = False


@dataclass(frozen=True)
class Graph:
    """Nodes in an order that obeys every dependency, and the blocks of memory that they work on."""

    nodes: Sequence[Node]
    blocks: Sequence[Any]


@dataclass(frozen=True)
class CapturedEvent:
    """An event that was recorded in a capture: it has no time. `seen`: how much of each lane lies before it."""

    capture: Capture
    number: int
    seen: dict[int, int]


@dataclass
class Capture:
    """A capture that goes on: the streams that take part, by lane, and what they were given."""

    origin: int
    relaxed: bool
    newest: int
    """Id of the last buffer that was there before."""
    lanes: dict[int, int] = field(default_factory=dict)
    seen: list[dict[int, int]] = field(default_factory=list)
    """For each lane, how much of each lane comes before what it is given next."""
    nodes: list[Node] = field(default_factory=list)
    blocks: dict[int, Any] = field(default_factory=dict)
    held: dict[int, Any] = field(default_factory=dict)
    """Those of the blocks that the pool gives to nobody from now on; both by their id()."""
    invalid: bool = False

    def lane(self, stream: int) -> int:
        """Return the stream's lane; a new one takes part from now on."""
        if stream not in self.lanes:
            self.lanes[stream] = len(self.seen)
            self.seen.append({})
        return self.lanes[stream]

    def append(self, lane: int, node: Node) -> None:
        """Add a node behind what its lane has."""
        if len(self.nodes) >= NODES:
            raise InvalidCommandError(f"a graph of more than {NODES:,} nodes")
        self.nodes.append(node)
        self.seen[lane][lane] = self.seen[lane].get(lane, 0) + 1


class Captures:
    """The captures of a machine that go on, and the graphs that live. Streams and buffers are numbers."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self.streams: dict[int, Capture] = {}
        """The captures that go on, by each stream that takes part."""
        self._graphs: dict[int, Graph] = {}
        self._last = 0

    def begin(self, stream: int, mode: int | None) -> None:
        """Begin a capture on a stream; the mode is CUDA's number, None the strict one."""
        if stream == 0:
            raise RuntimeError("cannot capture on the default (legacy) stream")
        if mode not in (None, 0, 1, RELAXED):
            raise InvalidCommandError(f"mode is {mode!r:.40}; expected one of cuda.runtime.streamCaptureMode*")
        if stream in self.streams:
            raise failure("IllegalState")
        capture = Capture(stream, mode == RELAXED, self._pool.newest)
        capture.lane(stream)
        self.streams[stream] = capture

    def end(self, stream: int) -> int:
        """End the capture that began on this stream, and return the number of its graph, which is below 0."""
        capture = self.streams.get(stream)
        if capture is None:
            raise failure("IllegalState")
        if stream != capture.origin:
            capture.invalid = True
            raise failure("StreamCaptureUnmatched")
        for number in capture.lanes:
            del self.streams[number]
        joined = all(capture.seen[ORIGIN].get(lane, 0) >= seen.get(lane, 0) for lane, seen in enumerate(capture.seen))
        broken = "Invalidated" if capture.invalid else "" if joined else "Unjoined"
        if broken or len(self._graphs) >= GRAPHS:
            self._pool.release(capture.held.values())
            if broken:
                raise failure(f"StreamCapture{broken}")
            raise InvalidCommandError(f"more than {GRAPHS:,} graphs at a time")
        self._pool.hold([block for key, block in capture.blocks.items() if key not in capture.held])
        self._last -= 1
        self._graphs[self._last] = Graph(capture.nodes, list(capture.blocks.values()))
        return self._last

    def graph(self, number: Any) -> Graph:
        """Return the graph of this number."""
        found = self._graphs.get(number) if type(number) is int else None
        if found is None:
            raise InvalidCommandError(f"graph {number!r:.40} does not exist")
        return found

    def drop(self, number: int) -> None:
        """Let go of a graph; unknown numbers are ignored."""
        graph = self._graphs.pop(number, None)
        if graph is not None:
            self._pool.release(graph.blocks)

    def of(self, stream: int) -> Capture | None:
        """Return the capture that the stream takes part in, for work that it is to be given; raise if it is invalid."""
        if not self.streams:
            return None
        capture = self.streams.get(stream)
        if capture is not None and capture.invalid:
            raise failure("StreamCaptureInvalidated")
        if stream == 0:
            self._invalidate(self._blocking(), "StreamCaptureImplicit")
        return capture

    def is_capturing(self, stream: int) -> bool:
        """Return whether the stream takes part in a capture. Raises RuntimeError for an invalid one."""
        if stream == 0 and self._blocking():
            raise failure("StreamCaptureImplicit")
        capture = self.streams.get(stream)
        if capture is not None and capture.invalid:
            raise RuntimeError(_INVALID)
        return capture is not None

    def add(self, capture: Capture, stream: int, work: Work, views: Iterable[View]) -> None:
        """Keep a kernel. What was allocated before the capture goes to no other array while the graph lives."""
        lane = capture.lane(stream)
        capture.append(lane, Node(lane, work))
        for view in views:
            block = self._pool.blocks[view.buffer]
            capture.blocks[id(block)] = block
            if view.buffer <= capture.newest and id(block) not in capture.held:
                capture.held[id(block)] = block
                self._pool.hold([block])

    def add_graph(self, capture: Capture, stream: int, graph: Graph) -> None:
        """Keep the launch of a graph: its kernels become nodes of the other one, one after another."""
        lane = capture.lane(stream)
        for node in graph.nodes:
            if node.work:
                capture.append(lane, Node(lane, node.work))
        capture.blocks.update((id(block), block) for block in graph.blocks)

    def check(self, stream: int, purpose: str) -> None:
        """Raise, as CuPy does, for what a capture refuses and survives: a copy (H2D, D2H), or one of `LIBRARIES`."""
        if purpose in LIBRARIES and self.is_capturing(stream):
            raise UnsupportedError(f"calling {purpose} API during stream capture is currently unsupported")
        if purpose in COPIES and self.is_capturing(stream):
            raise RuntimeError(f"the current stream is capturing, so {purpose} transfers are disallowed")

    def check_wait(self, stream: int | None) -> None:
        """Raise for a host that waits for a capturing stream; None: for the device, if anything is captured."""
        if stream is None:
            self._invalidate(list(self.streams.values()), "StreamCaptureUnsupported")
        elif stream in self.streams:
            self._invalidate([self.streams[stream]], "StreamCaptureUnsupported")
        else:
            self.of(stream)

    def check_growth(self, nbytes: int) -> None:
        """Raise where the pool has no free block for this and something is captured, other than in the relaxed mode."""
        strict = [capture for capture in self.streams.values() if not capture.relaxed]
        if strict and not self._pool.has(nbytes):
            self._invalidate(strict, "StreamCaptureUnsupported")

    def record(self, stream: int, number: int) -> CapturedEvent | None:
        """Return the event that a capturing stream records; None where there is no capture."""
        capture = self.of(stream)
        if capture is None:
            return None
        lane = capture.lane(stream)
        capture.append(lane, Node(lane, event=number))
        return CapturedEvent(capture, number, dict(capture.seen[lane]))

    def wait(self, event: Any, stream: int) -> bool:
        """Let a stream wait for an event; return whether that belongs to a capture. So a second stream joins one."""
        capture = self.of(stream)
        if not isinstance(event, CapturedEvent):
            if capture is not None:
                self._invalidate([capture], "StreamCaptureIsolation")
            return False
        if event.capture.origin not in self.streams or self.streams[event.capture.origin] is not event.capture:
            raise failure("CapturedEvent")
        if capture is not None and capture is not event.capture:
            self._invalidate([capture, event.capture], "StreamCaptureMerge")
        if stream == 0:
            self._invalidate([event.capture], "StreamCaptureImplicit")
        lane = event.capture.lane(stream)
        self.streams[stream] = event.capture
        seen = event.capture.seen[lane]
        seen.update({other: max(count, seen.get(other, 0)) for other, count in event.seen.items()})
        event.capture.nodes.append(Node(lane, event=event.number, waits=True))
        return True

    def _blocking(self) -> list[Capture]:
        """Captures that began on a stream for which the default stream waits."""
        return [capture for capture in self.streams.values() if capture.origin < NON_BLOCKING]

    def _invalidate(self, captures: Sequence[Capture], error: str) -> None:
        for capture in captures:
            capture.invalid = True
        if captures:
            raise failure(error)


def library_of(op: str, options: Options) -> str:
    """Return which of CUDA's libraries CuPy calls for a launch, of those that it refuses to capture; "" for none."""
    return "cuBLAS" if op == "kernel" and options.get("name") == "product" else str(options.get("library", ""))


def failure(name: str) -> CUDARuntimeError:
    """Return the error of this name, without "cudaError" before it, in CUDA's words."""
    return CUDARuntimeError(f"cudaError{name}: {_WORDS[name]}")
