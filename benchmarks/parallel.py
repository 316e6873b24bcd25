"""Many GPUs: all-reduce beside bare NCCL, and training beside PyTorch's DistributedDataParallel.

    python benchmarks/parallel.py [--only SECTION ...] [--quick] [--json lib/unrolled/records/parallel.json]

Sections: all_reduce (ours beside NCCL called bare, in turn in the same processes; `graph_s` is a call inside of a CUDA
graph, `bus_gb_s` the bytes that cross each link of a ring in a second), weak (source B's network, 256 channels, 512
images a GPU), strong (source A's network, a batch shared by all). A rank is a process and has one GPU. Rows for more
GPUs than are there are left out. What fails leaves its error as a row.

`ours_s` is a step with one all-reduce of the flat gradient, `overlapped_s` one in which the gradient of all layers but
the first is summed beside the first one's backward pass. A step's time on one GPU over that on several is the
`efficiency` of weak scaling, 1 at best, and the `speedup` of strong scaling, the number of GPUs at best. Sides are
processes of their own that take turns; medians of rounds. All in float32, TF32 off; first gradients compared.
"""

from __future__ import annotations

import contextlib
import os
import statistics
from collections.abc import Callable
from functools import partial
from typing import Any

import common
import gpu
from parallel_sides import Case, Side, agree, in_turns, start_ddp, start_ours
from unrolled.parallel.nccl import gpus, load
from unrolled.parallel.nccl_start import run_nccl

Row = dict[str, Any]
COUNTS = (2, 4)
SIZES = (4 << 10, 64 << 10, 1 << 20, 16 << 20, 256 << 20)
WEAK = Case("B", (3, 32, 32), 512)
STRONG = (8, 1024)
PEER = "DistributedDataParallel"


def all_reduce(quick: bool) -> list[Row]:
    """Measure the sizes, and the gradient of source B's network."""
    sizes = {size_name(size): size for size in SIZES}
    sizes["the gradient of source B, 256 channels"] = int(WEAK.build().parameters.nbytes)
    rows = []
    for ranks in counts():
        found = run_nccl(time_all_reduce, [list(sizes.values()), 5 if quick else 15], ranks=ranks, timeout=120)
        for (name, size), *by_rank in zip(sizes.items(), *found, strict=True):
            slowest = {key: max(times[key] for times in by_rank) for key in ("ours_s", "peer_s", "graph_s", "host_s")}
            ratio = statistics.median(times["ratio"] for times in by_rank)
            bus = 2 * (ranks - 1) / ranks * size / slowest["ours_s"] / 1e9
            shown = {"name": f"all_reduce, {name}, {ranks} GPUs", "bytes": size, "peer": "bare NCCL"}
            rows.append({"section": "all_reduce", **shown, **slowest, "ratio": ratio, "bus_gb_s": bus})
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
        ours, peer = partial(comm.all_reduce, x, out), partial(bare.allReduce, *arguments)
        steps = {"ours": ours, "peer": peer}
        for step in steps.values():
            out.fill(-1)
            step()
            if float(cp.abs(out - sum(xs[1:], xs[0])).max()) > 1e-5:
                raise ArithmeticError(f"the sum of {size} bytes is wrong")
        del xs
        calls = 300 if size < 1 << 21 else 30
        rows.append(time_both(steps, calls, rounds) | {"graph_s": graphed(ours, rounds)})
    return rows


def time_both(steps: dict[str, Callable[[], Any]], calls: int, rounds: int) -> dict[str, float]:
    """Time both sides in turn, in the same order on all ranks."""
    import gpu_timing
    from parallel_sides import block

    times = in_turns({side: partial(block, step, calls) for side, step in steps.items()}, rounds)
    return {**common.compared(times), "host_s": gpu_timing.host_seconds(steps["ours"])}


def graphed(step: Callable[[], Any], rounds: int, calls: int = 20) -> float:
    """Return the seconds of a call in a CUDA graph of several."""
    import cupy as cp

    from parallel_sides import block

    stream = cp.cuda.Stream(non_blocking=True)
    cp.cuda.runtime.deviceSynchronize()
    with stream:
        stream.begin_capture()
        for _ in range(calls):
            step()
        captured = stream.end_capture()
        return statistics.median(block(lambda: captured.launch(stream), 5) for _ in range(rounds)) / calls


def weak(quick: bool) -> list[Row]:
    """Measure a step with as many images a GPU, on more and more GPUs."""
    named = "weak scaling, source B, 256 channels, batch 512 a GPU"
    return scaling("weak", named, dict.fromkeys((1, *counts()), WEAK), 8 if quick else 25, 3 if quick else 15)


def strong(quick: bool) -> list[Row]:
    """Measure a step with as many images in all, shared by more and more GPUs."""
    rows = []
    for batch in STRONG:
        cases = {ranks: Case("A", (1, 28, 28), batch // ranks) for ranks in (1, *counts())}
        named = f"strong scaling, source A, batch {batch} in all"
        rows += scaling("strong", named, cases, 50 if quick else 200, 3 if quick else 15)
    return rows


def scaling(section: str, named: str, cases: dict[int, Case], calls: int, rounds: int) -> list[Row]:
    """Measure ours, ours overlapped and PyTorch on each number of GPUs, all of them in turn."""
    with contextlib.ExitStack() as stack:
        sides: dict[str, Side] = {}
        for ranks, case in cases.items():
            sides[f"ours {ranks}"] = Side(start_ours, ranks, case, False)
            if ranks > 1:
                sides[f"overlapped {ranks}"] = Side(start_ours, ranks, case, True)
            sides[f"peer {ranks}"] = Side(start_ddp, ranks, case)
            agree([side for name, side in sides.items() if name.endswith(f" {ranks}")])
        for side in sides.values():
            stack.callback(side.close)
        times = in_turns({name: partial(side.turn, calls) for name, side in sides.items()}, rounds)
    one = {side: statistics.median(times[f"{side} 1"]) for side in ("ours", "peer")}
    gain, rows = "efficiency" if section == "weak" else "speedup", []
    for ranks in cases:
        found = common.compared(times, f"ours {ranks}", f"peer {ranks}")
        row = {"section": section, "name": f"{named}, {ranks} GPU{'s' * (ranks > 1)}", "gpus": ranks, **found}
        row |= {"peer": PEER if ranks > 1 else "PyTorch", f"peer_{gain}": one["peer"] / found["peer_s"]}
        row[gain] = one["ours"] / found["ours_s"]
        if ranks > 1:
            row["overlapped_s"] = statistics.median(times[f"overlapped {ranks}"])
            row[f"overlapped_{gain}"] = one["ours"] / row["overlapped_s"]
        rows.append(row)
    return rows


def counts() -> list[int]:
    """Return the numbers of GPUs above one that this machine can take."""
    return [ranks for ranks in COUNTS if ranks <= gpus()]


def facts() -> dict[str, Any]:
    """Return what a record of many GPUs says besides."""
    return {"gpus": gpus(), "nccl": load()[1].get_version()}


def size_name(size: int) -> str:
    return f"{size >> 20} MiB" if size >= 1 << 20 else f"{size >> 10} KiB"


SECTIONS: dict[str, Callable[[bool], list[Row]]] = {section.__name__: section for section in (all_reduce, weak, strong)}


def main() -> None:
    """Measure the sections asked for; save after each, so that a run cut short leaves what it has."""
    chosen = common.sections(common.parser(__doc__), SECTIONS)
    os.environ["NVIDIA_TF32_OVERRIDE"] = "0"  # of all that this starts
    gpu.measured(chosen, lambda name, rows: SECTIONS[name](chosen.quick), facts())


if __name__ == "__main__":
    main()
