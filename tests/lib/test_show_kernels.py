"""unrolled.show: the pictures of lesson 08 count what the simulated GPU counts for a kernel that does the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from jit_programs import kernel

from unrolled import show
from unrolled import simgpu as cp
from unrolled.show.banks import TILES, words_of
from unrolled.show.barriers import with_barriers, without_barriers
from unrolled.show.hardware import SHARED
from unrolled.show.sheet import Sheet
from unrolled.show.warps import STRIDES, Access, places_of
from unrolled.simgpu import jit
from unrolled.simgpu.lockstep.price import SHARED_LIMIT

VALUES = np.array([3, 1, 4, 1, 5, 9, 2, 6], float)


def report(source: str, *arrays: Any, threads: int) -> Any:
    compiled = kernel(source, jit, cp)
    compiled[1, threads](*map(cp.asarray, arrays))
    return compiled.report


def read(index: str, threads: int, dtype: str = "f") -> Any:
    """What the simulated GPU counts where thread i reads x[index]."""
    source = f"def kernel(y, x):\n    i = cp.int32(jit.threadIdx.x)\n    y[i] = x[{index}]\n"
    return report(source, np.zeros(threads, dtype), np.zeros(64 * threads, dtype), threads=threads).total


# warps


@pytest.mark.parametrize("dtype", ["f", "d", "B"])
@pytest.mark.parametrize("index", ["i", "i + 1", "2 * i", "32 * i", "31 - i % 32", "i // 4", "i * 37 % 64", "0"])
def test_a_warps_sectors_are_those_that_the_simulated_gpu_counts(index: str, dtype: str) -> None:
    pattern: Callable[[int], int] = eval(f"lambda i: {index}")
    access = Access("x", places_of("x", pattern, 96), np.dtype(dtype).itemsize)
    total = read(index, 96, dtype)
    assert sum(len(access.sectors(warp)) for warp in range(3)) == total.read_sectors
    assert sum(access.fewest(warp) for warp in range(3)) == total.read_ideal


def test_the_strides_of_the_picture_read_what_they_say() -> None:
    for name, pattern in STRIDES.items():
        total = read(name[2:-1], 32)
        access = Access(name, places_of(name, pattern, 32), 4)
        assert (len(access.sectors(0)), access.fewest(0)) == (total.read_sectors, total.read_ideal)


def test_warps_in_words() -> None:
    alt = show.warps().at(pattern="x[2 * i]", warp=1).alt
    assert "Warp 1, threads 32 to 63, reads at byte 256 with its first thread and at byte 504 with its last" in alt
    assert "8 sectors fetched, 4 would do: 128 of 256 bytes are used, 50 %." in alt
    assert alt.endswith("Of the others: x[i], 4 for 4; x[i + 1], 5 for 4; x[32 * i], 32 for 4.")
    assert show.warps(start="x[32 * i]").start == {"pattern": "x[32 * i]", "warp": 0}


def test_rows_of_memory_are_those_that_have_room() -> None:
    near, far = (Access(name, places_of(name, STRIDES[name], 96), 4) for name in ("x[2 * i]", "x[32 * i]"))
    assert near.lines(1) == [0, 1, 2, 3, 4, 5]
    assert far.lines(1) == list(range(32, 64))
    assert near.readers(2)[:4] == [[32], [], [33], []]


def test_the_sectors_that_are_fetched_light_up(monkeypatch: pytest.MonkeyPatch) -> None:
    hatched: list[Any] = []
    monkeypatch.setattr(Sheet, "hatch", lambda sheet, boxes, *look: hatched.append(list(boxes)))
    show.warps().at(pattern="x[2 * i]", warp=2)
    *lines, squares, would_do, legend = hatched
    assert [len(boxes) for boxes in lines] == [0, 0, 0, 0, 16, 16]
    assert (len(squares), len(would_do), len(legend)) == (8, 0, 1)


def test_a_squares_hatched_part_is_what_the_warp_leaves_of_the_sector() -> None:
    next_one, far = (Access(name, places_of(name, STRIDES[name], 32), 4) for name in ("x[i + 1]", "x[32 * i]"))
    assert next_one.shares(0) == [7 / 8, 1, 1, 1, 1 / 8]
    assert far.shares(0) == [1 / 8] * 32


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"patterns": {"x[i - 1]": lambda i: i - 1}}, r"'x\[i - 1\]' is the place -1 for some thread"),
        ({"patterns": {}}, "start must be one of the patterns"),
        ({"start": "x[3 * i]"}, r"got 'x\[3 \* i\]' for \['x\[i\]'"),
        ({"warps": 9}, "warps 1 to 8, got 4 and 9"),
        ({"itemsize": 3}, "itemsize must be 1, 2, 4, 8 or 16"),
    ],
)
def test_patterns_that_cannot_be_drawn_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        show.warps(**arguments)


# banks


@pytest.mark.parametrize("word", ["t", "32 * t", "33 * t", "2 * t", "t // 2", "0", "(t * 7) % 64", "t % 4 * 32 + t"])
def test_passes_are_those_that_the_simulated_gpu_counts(word: str) -> None:
    source = (
        "def kernel(y):\n    t = cp.int32(jit.threadIdx.x)\n    s = jit.shared_memory(cp.float32, 1152)\n"
        "    for k in range(t, 1152, 32):\n        s[k] = 0.0\n"
        f"    jit.syncthreads()\n    y[t] = s[{word}]\n"
    )
    lines = report(source, np.zeros(32, "f"), threads=32).lines
    line = next(line for line in lines if line.code.startswith("y[t]"))
    wanted = words_of(word, eval(f"lambda t: {word}"))
    assert (wanted.passes, wanted.conflicts) == (line.shared_passes, line.bank_conflicts)


def test_the_tiles_of_the_picture() -> None:
    assert [words_of(name, tile).conflicts for name, tile in TILES.items()] == [0, 31, 0]
    alt = show.banks(start="a column of 32 × 32").alt
    assert "Its lanes go to bank 0. One bank has to give 32 words, one a pass: 32 passes, 31 bank conflicts." in alt
    assert alt.endswith("Passes of the others: a row of 32 × 32, 1; a column of 32 × 33, 1.")
    assert "Its lanes go to banks 0 to 31." in show.banks().alt


@pytest.mark.parametrize(
    ("patterns", "message"),
    [
        ({}, "start must be one of the patterns"),
        ({"far": lambda lane: 40 * lane}, "wants the words 0 to 1240; expected words from 0 to 1151"),
        ({"left": lambda lane: lane - 1}, "wants the words -1 to 30"),
    ],
)
def test_words_without_room_are_refused(patterns: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        show.banks(patterns)


# barriers

LOOP = """
def kernel(y, x):
    t = cp.int32(jit.threadIdx.x)
    s = jit.shared_memory(cp.float32, 8)
    s[t] = x[t]
    jit.syncthreads()
    half = 4
    while half > 0:
        if t < half:
            s[t] += s[t + half]
        half //= 2
        BARRIER
    if t == 0:
        y[0] = s[0]
"""


def test_the_tree_is_the_kernels_and_without_a_barrier_the_kernel_races() -> None:
    y, x = cp.zeros(1, "f"), cp.asarray(VALUES.astype("f"))
    compiled = kernel(LOOP.replace("BARRIER", "jit.syncthreads()"), jit, cp)
    compiled[1, 8](y, x)
    tree = with_barriers(VALUES)
    assert tree.result == y.get()[0] == VALUES.sum()
    assert compiled.report.barriers == 1 + len(tree.steps)
    with pytest.raises(jit.KernelFault, match="race"):
        kernel(LOOP.replace("BARRIER", "pass"), jit, cp)[1, 8](y, x)


@pytest.mark.parametrize("count", [4, 8, 16])
def test_without_barriers_every_addition_is_done_and_the_sum_is_wrong(count: int) -> None:
    values = 2.0 ** np.arange(count)
    ordered, hasty = with_barriers(values), without_barriers(values)
    assert ordered.result == values.sum() != hasty.result
    assert len(ordered.steps) == len(hasty.steps)
    adds = [{(add.thread, add.other) for step in tree.steps for add in step} for tree in (ordered, hasty)]
    assert adds[0] == adds[1]
    assert not any(add.late for step in ordered.steps for add in step)


def test_what_is_read_too_early_has_not_its_value_yet() -> None:
    memory, finished = VALUES.copy(), with_barriers(VALUES).memory
    for step in without_barriers(VALUES).steps:
        for add in step:
            half = add.other - add.thread
            expected = finished[len(finished) - 1 - half.bit_length(), add.other]
            assert add.late == (memory[add.other] != expected)
            memory[add.thread] += memory[add.other]


def test_barriers_in_words() -> None:
    alt = show.barriers().at(step=1).alt
    assert "Step 1: threads 0 to 3: s[t] += s[t + 4]. Read: s[0] to s[7]. Written: s[0] to s[3]. s[0] = 8." in alt
    assert "Step 1: thread 0 goes on without waiting. Read too early: s[2] and s[1]. s[0] = 13." in alt
    assert show.barriers().alt.endswith("s[0] = 13; the sum is 31. Shared memory s: 13, 11, 6, 7, 5, 9, 2, 6.")
    with pytest.raises(ValueError, match=r"values have shape \(6,\); expected 4, 8 or 16"):
        show.barriers(range(6))


# hardware


def test_a_multiprocessor_enlarged() -> None:
    profile = cp.profiles.PROFILES["T4"]
    words = "warps of 32 threads share a memory of 32 banks, which give 128 B a pass; a block may have 48 KiB of it."
    assert words in show.hardware(profile, inside=True).alt
    assert words not in show.hardware(profile).alt
    assert SHARED * 1024 == SHARED_LIMIT
