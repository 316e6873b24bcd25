"""Races, against the definition taken word for word: every pair of accesses of kernels that Hypothesis writes."""

from __future__ import annotations

from itertools import combinations
from typing import Any, NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st
from jit_programs import kernel

from unrolled import simgpu as cp
from unrolled.simgpu import jit
from unrolled.simgpu.jit import KernelFault

THREADS = 48
"""Threads of a block: a warp and a half."""
PLACES = ["t", "t ^ 1", "(t + 1) % 48", "47 - t", "t // 2", "0", "t % 32", "5"]
GUARDS = ["True", "t < 16", "t == 3", "t % 2 == 0", "t >= 32", "t < 1"]


class Access(NamedTuple):
    block: int
    thread: int
    place: int
    writes: bool
    step: int


Statement = tuple[str, str, str]  # what ("read", "write", "barrier", "warp"), where, in which threads
STATEMENTS = st.lists(
    st.tuples(st.sampled_from(["read", "write", "write", "barrier", "warp"]), st.sampled_from(PLACES))
    .flatmap(lambda pair: st.tuples(st.just(pair[0]), st.just(pair[1]), st.sampled_from(GUARDS)))
    .map(lambda found: found if found[0] in ("read", "write") else (found[0], "", "")),
    min_size=1,
    max_size=6,
)


def source(statements: list[Statement], array: str) -> str:
    lines = ["t = cp.int32(jit.threadIdx.x)", "g = cp.int32(jit.grid(1))"]
    if array == "s":
        lines += ["s = jit.shared_memory(cp.int32, 48)", "s[t] = -1", "jit.syncthreads()"]
    lines.append("v = 0")
    for number, (what, place, guard) in enumerate(statements):
        match what:
            case "read":
                lines += [f"if {guard}:", f"    v += {array}[{place}]"]
            case "write":
                lines += [f"if {guard}:", f"    {array}[{place}] = g + {1000 * (number + 1)}"]
            case "barrier":
                lines.append("jit.syncthreads()")
            case "warp":
                lines.append("jit.syncwarp()")
    return "def made(y):\n" + "\n".join(f"    {line}" for line in lines) + "\n"


def accesses(statements: list[Statement], blocks: int) -> list[Access]:
    lanes = [(block, t) for block in range(blocks) for t in range(THREADS)]
    return [
        Access(block, t, eval(place, {"t": t}), what == "write", step)
        for step, (what, place, guard) in enumerate(statements)
        for block, t in lanes
        if what in ("read", "write") and eval(guard, {"t": t})
    ]


def ordered(one: Access, other: Access, statements: list[Statement]) -> bool:
    between = {what for what, _, _ in statements[one.step : other.step]}
    same_warp = one.thread // 32 == other.thread // 32
    return one.block == other.block and ("barrier" in between or ("warp" in between and same_warp))


def races(statements: list[Statement], blocks: int) -> bool:
    by_place: dict[int, list[Access]] = {}
    for access in accesses(statements, blocks):
        by_place.setdefault(access.place, []).append(access)
    return any(
        (one.writes or other.writes)
        and (one.block, one.thread) != (other.block, other.thread)
        and not ordered(one, other, statements)
        for found in by_place.values()
        for one, other in combinations(found, 2)
    )


def finds(text: str, blocks: int) -> Any:
    """The kind of fault that the simulated GPU finds, or None."""
    try:
        kernel(text, jit, cp)[blocks, THREADS](cp.zeros(THREADS, "i"))
    except KernelFault as error:
        return error.fault.kind
    return None


@settings(max_examples=150)
@given(STATEMENTS)
def test_races_in_shared_memory(statements: list[Statement]) -> None:
    expected = "race" if races(statements, 1) else None
    assert finds(source(statements, "s"), 3) == expected, source(statements, "s")


@settings(max_examples=100)
@given(STATEMENTS, st.sampled_from([1, 2]))
def test_races_in_global_memory(statements: list[Statement], blocks: int) -> None:
    expected = "race" if races(statements, blocks) else None
    assert finds(source(statements, "y"), blocks) == expected, source(statements, "y")
