"""What a launch reports: sectors, banks, branches, occupancy and work are counted, and set the modelled time."""

from typing import Any

import numpy as np
import pytest
from jit_programs import kernel

from unrolled import simgpu as cp
from unrolled.simgpu import jit
from unrolled.simgpu.jit import KernelReport
from unrolled.simgpu.machine import LocalMachine
from unrolled.simgpu.trace import Trace


def report(source: str, *arguments: Any, grid: Any = 1, threads: Any = 32, **names: Any) -> KernelReport:
    compiled = kernel(source, jit, cp, **names)
    compiled[grid, threads](*[cp.asarray(x) if isinstance(x, np.ndarray) else x for x in arguments])
    found: KernelReport = compiled.report
    return found


LOAD = "def kernel(y, x):\n    t = cp.int32(jit.threadIdx.x)\n    y[t] = x[{0}]\n"
STORE = LOAD.replace("    y[t] = x[{0}]", "    s = jit.shared_memory(cp.{1}, 2048)\n    s[{0}] = cp.{1}(1)")
SECTORS = {
    **{("t", "float32"): (4, 4), ("2 * t", "float32"): (8, 4), ("8 * t", "float32"): (32, 4)},
    **{("32 * t", "float32"): (32, 4), ("31 - t", "float32"): (4, 4), ("t + 1", "float32"): (5, 4)},
    **{("t + 8", "float32"): (4, 4), ("0", "float32"): (1, 1), ("t // 16", "float32"): (1, 1)},
    **{("t ^ 5", "float32"): (4, 4), ("(t * 7) % 32", "float32"): (4, 4), ("t", "float64"): (8, 8)},
    **{("2 * t", "float64"): (16, 8), ("t", "float16"): (2, 2), ("t", "uint8"): (1, 1)},
}
BANKS = {
    **{("t", "float32"): (1, 1), ("2 * t", "float32"): (2, 1), ("32 * t", "float32"): (32, 1)},
    **{("33 * t", "float32"): (1, 1), ("4 * t", "float32"): (4, 1), ("0", "float32"): (1, 1)},
    **{("31 - t", "float32"): (1, 1), ("t", "float64"): (2, 2), ("16 * t", "float64"): (32, 2)},
    **{("t", "uint8"): (1, 1), ("4 * t", "uint8"): (1, 1)},
}


@pytest.mark.parametrize(
    ("index", "dtype", "source", "expected"),
    [
        *((*case, LOAD, expected) for case, expected in SECTORS.items()),
        *((*case, STORE, expected) for case, expected in BANKS.items()),
    ],
)
def test_sectors_and_banks_of_a_warp(index: str, dtype: str, source: str, expected: tuple[int, int]) -> None:
    total = report(source.format(index, dtype), *np.zeros((2, 4096), dtype)).total
    counted = (total.read_sectors, total.read_ideal) if source is LOAD else (total.shared_passes, total.shared)
    assert counted == expected


def test_idle_lanes_touch_nothing() -> None:
    source = "def kernel(y, x):\n    t = cp.int32(jit.threadIdx.x)\n    if t % 8 == 0:\n        y[t] = x[t]\n"
    total = report(source, np.zeros(64, "f"), np.zeros(64, "f"), threads=40).total
    assert (total.reads, total.read_sectors, total.read_ideal) == (2, 5, 2)
    assert (total.writes, total.write_sectors, total.write_ideal) == (2, 5, 2)
    assert (total.branches, total.divergent) == (2, 2)


TRANSPOSE = """
def transpose(x, y):
    tile = jit.shared_memory(cp.float32, 32 * PITCH)
    tx = cp.int32(jit.threadIdx.x)
    ty = cp.int32(jit.threadIdx.y)
    bx = cp.int32(jit.blockIdx.x) * 32
    by = cp.int32(jit.blockIdx.y) * 32
    for k in range(0, 32, 8):
        if by + ty + k < x.shape[0] and bx + tx < x.shape[1]:
            tile[(ty + k) * PITCH + tx] = x[by + ty + k, bx + tx]
    jit.syncthreads()
    for k in range(0, 32, 8):
        if bx + ty + k < x.shape[1] and by + tx < x.shape[0]:
            y[bx + ty + k, by + tx] = tile[tx * PITCH + ty + k]
"""
NAIVE = """
def transpose(x, y):
    j, i = jit.grid(2)
    if i < x.shape[0] and j < x.shape[1]:
        y[j, i] = x[i, j]
"""


def transposed(source: str, rows: int, columns: int, threads: Any = (32, 8), pitch: int = 33) -> KernelReport:
    x, y = cp.asarray(np.arange(rows * columns, dtype="f").reshape(rows, columns)), cp.zeros((columns, rows), "f")
    grid = (-(-columns // 32), -(-rows // (32 if source is TRANSPOSE else threads[1])))
    compiled = kernel(source, jit, cp, PITCH=pitch)
    compiled[grid, threads](x, y)
    np.testing.assert_array_equal(y.get(), x.get().T)
    found: KernelReport = compiled.report
    return found


def test_a_tile_saves_sectors_and_padding_saves_banks() -> None:
    naive, tiled = (transposed(source, 96, 160) for source in (NAIVE, TRANSPOSE))
    unpadded = transposed(TRANSPOSE, 96, 160, pitch=32)
    sectors = 96 * 160 * 4 // 32
    assert naive.total.read_sectors == naive.total.read_ideal == sectors
    assert naive.total.write_sectors == 8 * sectors
    assert tiled.total.write_sectors == tiled.total.write_ideal == sectors
    assert tiled.total.bank_conflicts == 0
    assert unpadded.total.bank_conflicts == 31 * sectors // 4
    assert tiled.seconds < naive.seconds
    assert tiled.barriers == 15
    line = next(line for line in unpadded.lines if line.bank_conflicts)
    assert line.code.startswith("y[bx + ty + k, by + tx] = tile")


def test_the_order_of_blocks_is_drawn() -> None:
    source = "def kernel(y, x):\n    y[jit.blockIdx.x] = jit.atomic_add(x, 0, 1)\n"
    compiled, orders = kernel(source, jit, cp), set()
    for _ in range(4):
        y, x = cp.zeros(8, "i"), cp.zeros(1, "i")
        compiled[8, 1](y, x)
        orders.add(tuple(y.get()))
    assert len(orders) > 1
    assert all(sorted(order) == list(range(8)) for order in orders)


@pytest.mark.parametrize(
    ("profile", "threads", "shared_bytes", "expected"),
    [
        ("H200", 256, 0, (1.0, "threads")),
        ("H200", 32, 0, (0.5, "blocks")),
        ("H200", 256, 48 * 1024, (0.5, "shared memory")),
        ("T4", 1024, 0, (1.0, "threads")),
        ("T4", 768, 0, (0.75, "threads")),
        ("A100", 100, 0, (1.0, "threads")),
    ],
)
def test_occupancy(profile: str, threads: int, shared_bytes: int, expected: tuple[float, str]) -> None:
    source = "def kernel(y):\n    s = jit.shared_memory(cp.uint8, None)\n"
    cp.connect(LocalMachine(profile))
    try:
        compiled = kernel(source, jit, cp)
        compiled[1, threads](cp.zeros(1, "f"), shared_mem=shared_bytes)
    finally:
        cp.disconnect()
    assert (compiled.report.occupancy, compiled.report.limited_by) == expected


def test_the_trace_has_the_counted_traffic() -> None:
    source = "def strided(y, x):\n    i = cp.int32(jit.grid(1))\n    y[i] = x[8 * i] * 2.0 + 1.0\n"
    x, y = cp.zeros(8 * 1024, "f"), cp.zeros(1024, "f")
    with cp.trace() as trace:
        kernel(source, jit, cp)[8, 128](y, x)
    (launch,), (found,) = trace.launches, trace.kernels
    assert (launch.op, launch.bytes_read, launch.bytes_written) == ("strided", 1024 * 32, 1024 * 4)
    assert launch.seconds == pytest.approx(found.seconds)
    assert found.total.operations == launch.flops == 1024 * 3  # 8 * i, the product, the sum
    assert Trace.from_json(trace.to_json()) == trace
    assert KernelReport.from_plain(found.to_plain()) == found
    assert found.bytes_a_block == 1024 * 36 / 8
    assert "1,024 sectors, ideal 128" in str(found)


def test_blocks_side_by_side_count_as_they_do_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    from unrolled.simgpu.lockstep import launch
    from unrolled.simgpu.lockstep.state import RunLimits

    together = transposed(TRANSPOSE, 70, 90)
    monkeypatch.setattr(launch, "RunLimits", lambda: RunLimits(lanes=1))
    assert transposed(TRANSPOSE, 70, 90).lines == together.lines


def test_a_sector_that_a_thread_reads_on_is_fetched_once() -> None:
    source = "def kernel(y, x):\n    i = cp.int32(jit.grid(1))\n    for k in range(16):\n        y[i] += x[i, k]\n"
    found = report(source, np.zeros(32, "f"), np.zeros((32, 16), "f"))
    line = next(line for line in found.lines if line.reads)
    assert line.read_sectors == 16 * 32 + 16 * 4
    assert line.read_again >= 14 * 32


def test_a_part_of_a_sector_costs_a_read_as_well() -> None:
    source = "def kernel(y, x):\n    i = cp.int32(jit.grid(1))\n    y[STEP * i] = 1.0\n"
    near, far = (report(source, np.zeros(2**17, "f"), 0, grid=64, threads=256, STEP=step) for step in (1, 8))
    base = near.seconds - 4 * 2**14 / (0.9 * 320e9)
    assert (far.seconds - base) / (near.seconds - base) == pytest.approx(8 + 7, rel=0.2)
