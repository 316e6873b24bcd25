"""Programs that Hypothesis writes: arithmetic as NumPy's on C's types, control flow as Python's for each thread.

And races, against the definition taken word for word: every pair of accesses.
"""

from collections.abc import Callable
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from jit_programs import kernel

from unrolled import simgpu as cp
from unrolled.simgpu import jit
from unrolled.simgpu.jit import KernelFault

Values = Any
Expression = tuple[str, Callable[[Values, Values], Values]]
N = 48
"""Threads of a block: a warp and a half."""
EDGES = [0, 1, -1, 2, 7, -7, 31, 2**31 - 1, -(2**31)]


def _guarded(function: Callable[..., Any]) -> Callable[..., Any]:
    """A division of whole numbers: 0 where one divides by 0."""
    return lambda x, y: np.where(y == 0, 0, function(x, np.where(y == 0, 1, y))).astype(np.result_type(x, y))


WHOLE: dict[str, Callable[..., Any]] = {
    **{"+": np.add, "-": np.subtract, "*": np.multiply, "&": np.bitwise_and, "|": np.bitwise_or, "^": np.bitwise_xor},
    **{"//": _guarded(np.floor_divide), "%": _guarded(np.remainder)},
}
REAL: dict[str, Callable[..., Any]] = {
    **{"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide},
    **{"//": lambda x, y: np.floor(x / y), "%": lambda x, y: (x - np.floor(x / y) * y.astype("d")).astype("f")},
}


def grown(operators: dict[str, Callable[..., Any]]) -> Callable[[Any], st.SearchStrategy[Expression]]:
    def grow(parts: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
        def binary(name: str, x: Expression, y: Expression) -> Expression:
            return f"({x[0]} {name} {y[0]})", lambda a, b: operators[name](x[1](a, b), y[1](a, b))

        def choice(c: Expression, x: Expression, y: Expression) -> Expression:
            return f"({x[0]} if {c[0]} > {y[0]} else {y[0]})", lambda a, b: np.where(
                c[1](a, b) > y[1](a, b), x[1](a, b), y[1](a, b)
            )

        def extreme(name: str, x: Expression, y: Expression) -> Expression:
            function = {"min": np.minimum, "max": np.maximum}[name]
            return f"{name}({x[0]}, {y[0]})", lambda a, b: function(x[1](a, b), y[1](a, b))

        return (
            st.builds(binary, st.sampled_from(sorted(operators)), parts, parts)
            | st.builds(choice, parts, parts, parts)
            | st.builds(extreme, st.sampled_from(["min", "max"]), parts, parts)
        )

    return grow


def check(expression: Expression, dtype: str) -> None:
    (text, expected), rng = expression, np.random.default_rng(3)
    if dtype == "float32":
        a, b = rng.normal(size=(2, N)).astype(dtype)
    else:
        a, b = np.resize(np.array(EDGES, dtype), N), rng.integers(-9, 9, N).astype(dtype)
    y = cp.zeros(N, dtype)
    kernel(f"def made(y, a, b):\n    t = cp.int32(jit.threadIdx.x)\n    y[t] = {text}\n", jit, cp)[1, N](
        y, cp.asarray(a), cp.asarray(b)
    )
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(y.get(), expected(a, b).astype(dtype), err_msg=text)


def typed(numbers: st.SearchStrategy[Any], dtype: str) -> st.SearchStrategy[Expression]:
    """Numbers as NumPy's of the type, since Python computes with its own before C does."""
    kind = np.dtype(dtype).type
    return numbers.map(lambda n: (f"cp.{dtype}(a[t] * 0 + ({n!r}))", lambda a, b: np.full(N, kind(n))))


NAMES = st.sampled_from([("a[t]", lambda a, b: a), ("b[t]", lambda a, b: b)])
INTEGERS = st.recursive(NAMES | typed(st.integers(-100, 100), "int32"), grown(WHOLE), max_leaves=8)
FLOATS = st.recursive(
    NAMES | typed(st.sampled_from([0.5, -1.25, 3.0, 0.1, -2.7]), "float32"), grown(REAL), max_leaves=8
)


@settings(max_examples=100)
@given(INTEGERS.map(lambda made: (made, "int32")) | FLOATS.map(lambda made: (made, "float32")))
def test_expressions(made: tuple[Expression, str]) -> None:
    check(*made)


def _block(statements: list[str], depth: int) -> list[str]:
    return ["    " * depth + line for line in statements] or ["    " * depth + "pass"]


@st.composite
def statements(draw: st.DrawFn, depth: int = 0, loop: bool = False) -> list[str]:
    """Statements on t and s, which stay small; every loop ends."""
    lines: list[str] = []
    for _ in range(draw(st.integers(1, 3))):
        kind = draw(st.sampled_from(["set", "if", "for", "while", "jump"] if depth < 3 else ["set"]))
        number = draw(st.integers(1, 7))
        test = draw(st.sampled_from([f"s % {number} == 0", f"t > {number}", f"s + t < {number}", f"t % {number} != s"]))
        if kind == "if":
            lines += [f"if {test}:", *_block(draw(statements(depth + 1, loop)), 1)]
            lines += ["else:", *_block(draw(statements(depth + 1, loop)), 1)]
        elif kind == "for":
            bounds = draw(st.sampled_from([f"{number}", f"t % {number}", f"{number}, t % 3, -1", f"0, {number}, 2"]))
            lines += [f"for k{depth} in range({bounds}):", *_block(draw(statements(depth + 1, True)), 1)]
        elif kind == "while":
            lines += [f"w{depth} = t % {number}", f"while w{depth} > 0:", f"    w{depth} -= 1"]
            lines += _block(draw(statements(depth + 1, True)), 1)
        elif kind == "jump":
            lines += [f"if {test}:", f"    {draw(st.sampled_from(['break', 'continue'] if loop else ['pass']))}"]
        else:
            lines.append(draw(st.sampled_from([f"s = (s * 3 + {number}) % 101", "s += t", f"s = s // {number} - t"])))
    return lines


@given(statements())
def test_control_flow(lines: list[str]) -> None:
    body = "\n".join(_block(lines, 1))
    y = cp.zeros(N, "i")
    source = f"def made(y):\n    t = cp.int32(jit.threadIdx.x)\n    s = 0\n{body}\n    y[t] = s\n"
    kernel(source, jit, cp)[1, N](y)
    namespace: dict[str, Any] = {}
    exec(f"def plain(t):\n    s = 0\n{body}\n    return s\n", namespace)
    assert y.get().tolist() == [namespace["plain"](t) for t in range(N)], source


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
    lanes = [(block, t) for block in range(blocks) for t in range(N)]
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
        kernel(text, jit, cp)[blocks, N](cp.zeros(N, "i"))
    except KernelFault as error:
        return error.fault.kind
    return None


@settings(max_examples=100)
@given(STATEMENTS, st.sampled_from([("s", 3, 1), ("y", 1, 1), ("y", 2, 2)]))
def test_races_in_shared_and_global_memory(statements: list[Statement], where: tuple[str, int, int]) -> None:
    """Blocks share nothing of shared memory."""
    array, blocks, together = where
    expected = "race" if races(statements, together) else None
    assert finds(source(statements, array), blocks) == expected, source(statements, array)
