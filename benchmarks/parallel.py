"""Many GPUs: all-reduce beside bare NCCL, and training beside PyTorch's DistributedDataParallel.

    python benchmarks/parallel.py [--only SECTION ...] [--quick] [--json lib/unrolled/records/parallel.json]

Sections: all_reduce (ours, prepared, beside NCCL called bare, in turn in the same processes; `checked_s` is
`comm.all_reduce`, which checks each call, `graph_s` a call inside of a CUDA graph, `bus_gb_s` the bytes that cross each
link of a ring in a second), weak (source B's network, 256 channels, 512
images a GPU), strong (source A's network, a batch shared by all). A rank is a process and has one GPU. Rows for more
GPUs than are there are left out. What fails leaves its error as a row.

`ours_s` is a step with one all-reduce of the flat gradient, `overlapped_s` one in which the gradient of all layers but
the first is summed beside the first one's backward pass. A step's time on one GPU over that on several is the
`efficiency` of weak scaling, 1 at best, and the `speedup` of strong scaling, the number of GPUs at best. Sides are
processes of their own that take turns; medians of rounds. All in float32, TF32 off; first gradients compared.
"""

from __future__ import annotations

import contextlib
import itertools
import multiprocessing
import os
import random
import statistics
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from multiprocessing.connection import Client, Listener
from typing import Any

import common
import gpu_common
from common import Row, Step
from networks import CIFAR, MNIST, Case, momentum, source_a, source_b
from unrolled.parallel import gradients
from unrolled.parallel.nccl import gpus, load
from unrolled.parallel.nccl_start import run_nccl

COUNTS = (2, 4)
SIZES = (4 << 10, 64 << 10, 1 << 20, 16 << 20, 256 << 20)
WEAK = Case("weak", partial(source_b, 256), momentum, CIFAR, 512)
STRONG = (8, 1024)
PEER = "DistributedDataParallel"
KEYS = "ours_s", "checked_s", "peer_s", "graph_s", "host_s"  # of an all-reduce
KEY = b"benchmarks/parallel"
BATCHES = 4  # taken in turn
END = 20.0  # seconds that the ranks of a side have to end
CLOSE = 1e-3  # of the gradient's norm, by which two sides may differ
Address = tuple[str, int]
Side = tuple[Step, Callable[[], float]]
"""A step, and the norm of the last step's mean gradient."""


def all_reduce(chosen: Any) -> list[Row]:
    """Measure the sizes, and the gradient of source B's network."""
    sizes = {size_name(size): size for size in SIZES}
    sizes["the gradient of source B, 256 channels"] = int(WEAK.build().parameters.nbytes)
    rows = []
    for ranks in counts():
        found = run_nccl(time_all_reduce, [list(sizes.values()), 5 if chosen.quick else 15], ranks=ranks, timeout=120)
        for (name, size), *by_rank in zip(sizes.items(), *found, strict=True):
            slowest = {key: max(times[key] for times in by_rank) for key in KEYS}
            ratio = statistics.median(times["ratio"] for times in by_rank)
            bus = 2 * (ranks - 1) / ranks * size / slowest["ours_s"] / 1e9
            shown = {"name": f"all_reduce, {name}, {ranks} GPUs", "bytes": size, "peer": "bare NCCL"}
            rows.append({**shown, **slowest, "ratio": ratio, "bus_gb_s": bus})
    return rows


def time_all_reduce(comm: Any, sizes: list[int], rounds: int) -> list[dict[str, float]]:
    """In a rank: return the times for each size."""
    import cupy as cp

    _, nccl = load()
    bare = comm.connect("bare", comm.size, comm.rank)
    rows = []
    for size in sizes:
        xs = [cp.random.default_rng(rank).random(size // 4, dtype=cp.float32) for rank in range(comm.size)]
        x, out = xs[comm.rank], cp.empty_like(xs[0])
        stream = cp.cuda.get_current_stream().ptr
        arguments = (x.data.ptr, out.data.ptr, x.size, nccl.NCCL_FLOAT32, nccl.NCCL_SUM, stream)
        ours, checked = comm.prepare_all_reduce(x, out), partial(comm.all_reduce, x, out)
        steps = {"ours": ours, "checked": checked, "peer": partial(bare.allReduce, *arguments)}
        for step in steps.values():
            out.fill(-1)
            step()
            if float(cp.abs(out - sum(xs[1:], xs[0])).max()) > 1e-5:
                raise ArithmeticError(f"the sum of {size} bytes is wrong")
        del xs
        calls = 300 if size < 1 << 21 else 30
        times = in_turns({side: partial(block, step, calls) for side, step in steps.items()}, rounds)
        more = {"host_s": gpu_common.host_seconds(ours), "graph_s": graphed(ours, rounds)}
        more["checked_s"] = statistics.median(times["checked"])
        rows.append({**common.compared(times), **more})
    return rows


def graphed(step: Step, rounds: int, calls: int = 20) -> float:
    """Return the seconds of a call in a CUDA graph of several."""
    import cupy as cp

    stream = cp.cuda.Stream(non_blocking=True)
    gpu_common.synchronize()
    with stream:
        stream.begin_capture()
        for _ in range(calls):
            step()
        captured = stream.end_capture()
        return statistics.median(block(lambda: captured.launch(stream), 5) for _ in range(rounds)) / calls


def weak(chosen: Any) -> list[Row]:
    """Measure a step with as many images a GPU, on more and more GPUs."""
    named = "weak scaling, source B, 256 channels, batch 512 a GPU"
    return scaling(named, "efficiency", dict.fromkeys((1, *counts()), WEAK), 25, chosen.quick)


def strong(chosen: Any) -> list[Row]:
    """Measure a step with as many images in all, shared by more and more GPUs."""
    rows = []
    for batch in STRONG:
        cases = {ranks: Case("strong", source_a, momentum, MNIST, batch // ranks) for ranks in (1, *counts())}
        rows += scaling(f"strong scaling, source A, batch {batch} in all", "speedup", cases, 200, chosen.quick)
    return rows


def scaling(named: str, gain: str, cases: dict[int, Case], calls: int, quick: bool) -> list[Row]:
    """Measure ours, ours overlapped and PyTorch on each number of GPUs, all of them in turn."""
    calls, rounds = (calls // 4, 3) if quick else (calls, 15)
    with contextlib.ExitStack() as stack:
        sides: dict[str, Ranks] = {}
        for ranks, case in cases.items():
            sides[f"ours {ranks}"] = Ranks(start_ours, ranks, case, False)
            if ranks > 1:
                sides[f"overlapped {ranks}"] = Ranks(start_ours, ranks, case, True)
            sides[f"peer {ranks}"] = Ranks(start_ddp, ranks, case)
            agree([side for name, side in sides.items() if name.endswith(f" {ranks}")])
        for side in sides.values():
            stack.callback(side.close)
        times = in_turns({name: partial(side.turn, calls) for name, side in sides.items()}, rounds)
    one = {side: statistics.median(times[f"{side} 1"]) for side in ("ours", "peer")}
    rows = []
    for ranks in cases:
        found = common.compared(times, f"ours {ranks}", f"peer {ranks}")
        row = {"name": f"{named}, {ranks} GPU{'s' * (ranks > 1)}", "gpus": ranks, **found}
        row |= {"peer": PEER if ranks > 1 else "PyTorch", f"peer_{gain}": one["peer"] / found["peer_s"]}
        row[gain] = one["ours"] / found["ours_s"]
        if ranks > 1:
            row["overlapped_s"] = statistics.median(times[f"overlapped {ranks}"])
            row[f"overlapped_{gain}"] = one["ours"] / row["overlapped_s"]
        rows.append(row)
    return rows


def make(comm: Any, case: Case, overlapped: bool) -> Side:
    """Return a data-parallel step of ours.

    One all-reduce of the flat gradient; or, overlapped, one of all layers but the first, beside its backward pass.
    """
    import cupy as cp

    network, optimizer = case.build(cp), case.optimizer()
    batches = itertools.cycle(case.batches(cp, comm.rank, BATCHES))
    first = sum(view.size for view in network.layers[0].gradients.values())
    pieces = (slice(0, first), slice(first, None)) if overlapped else (slice(None),)

    def step() -> None:
        x, labels = next(batches)
        if comm.size > 1:
            gradients(comm, network, x, labels, case.batch * comm.size, pieces=pieces)
        else:
            network.loss_and_scores(x, labels)
        optimizer.step(network.parameters, network.gradients)

    return step, lambda: float(cp.linalg.norm(network.gradients))


def make_ddp(rank: int, size: int, case: Case, port: int) -> Side:
    """Return a step of PyTorch's, with DistributedDataParallel if there is more than one rank."""
    import torch

    import twins

    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.cuda.set_device(rank)
    network: Any = twins.twin(case.build()).cuda()
    if size > 1:
        torch.distributed.init_process_group("nccl", f"tcp://127.0.0.1:{port}", rank=rank, world_size=size)
        network = torch.nn.parallel.DistributedDataParallel(network, device_ids=[rank])
    batches = [twins.tensors(batch, gpu_common.cp) for batch in case.batches(seed=rank, count=BATCHES)]
    step = twins.stepper(network, case.optimizer(), batches)
    return step, lambda: float(sum(p.grad.square().sum() for p in network.parameters()) ** 0.5)


def block(step: Step, calls: int) -> float:
    """Return the seconds of one call, from `calls` in a row after one that lets the ranks meet; by CUDA's events."""
    step()
    return gpu_common.between_events(step, calls)


def serve(rank: int, address: Address, side: Side) -> None:
    """In a rank: say the first gradient's norm, then measure as often as asked."""
    step, norm = side
    with Client(address, authkey=KEY) as line, contextlib.suppress(EOFError):
        step()
        line.send((rank, norm()))
        while True:
            line.send(block(step, line.recv()))


def serve_ours(comm: Any, address: Address, case: Case, overlapped: bool) -> None:
    serve(comm.rank, address, make(comm, case, overlapped))


def serve_ddp(rank: int, size: int, address: Address, case: Case, port: int) -> None:
    gpu_common.cp.cuda.Device(rank).use()
    serve(rank, address, make_ddp(rank, size, case, port))


def start_ours(address: Address, ranks: int, case: Case, overlapped: bool) -> None:
    run_nccl(serve_ours, [address, case, overlapped], ranks=ranks, timeout=120)


def start_ddp(address: Address, ranks: int, case: Case) -> None:
    context = multiprocessing.get_context("spawn")
    with Listener(("127.0.0.1", 0)) as free:
        port = free.address[1]
    for rank in range(ranks):
        context.Process(target=serve_ddp, args=(rank, ranks, address, case, port), daemon=True).start()


class Ranks:
    """The ranks of one side; as a context, they end with it."""

    def __init__(self, start: Callable[..., None], ranks: int, *arguments: Any) -> None:
        with Listener(("127.0.0.1", 0), authkey=KEY) as listener:
            self._thread = threading.Thread(target=start, args=(listener.address, ranks, *arguments), daemon=True)
            self._thread.start()
            self._lines = [listener.accept() for _ in range(ranks)]
        self.norm = dict(line.recv() for line in self._lines)[0]

    def turn(self, calls: int) -> float:
        """Return the seconds of one call, on the rank that took longest."""
        for line in self._lines:
            line.send(calls)
        return max(line.recv() for line in self._lines)

    def close(self) -> None:
        for line in self._lines:
            line.close()
        self._thread.join(END)


def in_turns(turns: Mapping[str, Callable[[], float]], rounds: int) -> common.Times:
    """Return the seconds that each side's turn gives, after one that does not count; in the same order on all ranks."""
    for turn in turns.values():
        turn()
    return common.in_turn(turns, rounds, random.Random(0))


def agree(sides: Sequence[Ranks]) -> None:
    """Raise ArithmeticError unless all sides have found the same first gradient."""
    norms = [side.norm for side in sides]
    if max(norms) - min(norms) > CLOSE * statistics.median(norms):
        raise ArithmeticError(f"the norms of the first gradients differ: {norms}")


def counts() -> list[int]:
    """Return the numbers of GPUs above one that this machine can take."""
    return [ranks for ranks in COUNTS if ranks <= gpus()]


def size_name(size: int) -> str:
    return f"{size >> 20} MiB" if size >= 1 << 20 else f"{size >> 10} KiB"


if __name__ == "__main__":
    os.environ["NVIDIA_TF32_OVERRIDE"] = "0"  # of all that this starts
    sections = {section.__name__: section for section in (all_reduce, weak, strong)}
    sys.exit(gpu_common.run(__doc__, sections, lambda: {"gpus": gpus(), "nccl": load()[1].get_version()}))
