"""Random programs on CuPy and on the simulated GPU in one process: what differs, and the smallest programs that do.

    python benchmarks/twins_random.py [--quick] [--programs N] [--seed N] [--json benchmarks/results/twins_random.json]
        [--kernels N] [--seconds N] [--processes N] [--first cupy] [--second unrolled.simgpu]

After each line both sides are to have raised the same kind of error, or to hold the same values, dtypes and shapes:
bits, or units in the last place where the hardware may differ (`CLOSE`). `EXPECTED` names what differs on purpose; what
is left is unexplained, and smaller programs are sought for it. Exit code 1: something is unexplained.
"""

from __future__ import annotations

import argparse
import importlib
import itertools
import linecache
import os
import re
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from multiprocessing import get_context
from random import Random
from types import ModuleType
from typing import Any

import numpy as np

import common
import gpu_common
import twins_programs
from twins_programs import CLOSE, NAMES, Line, Palette, Program

DRAWS, SHRINK = 200, 20.0  # for one program: others that are tried, and seconds at most
GRACE = 60.0  # seconds beyond the end after which a process is given up
ANY = ("Exception", "BaseException", "object")
NUMERIC = ("value", "nan", "zero's sign")
CHUNK = 100  # programs that share a process and a palette, so that CuPy compiles fewer kernels
JIT = {"cupy": "cupyx.jit", "unrolled.simgpu": "unrolled.simgpu.jit"}
_numbers = itertools.count()


@dataclass(frozen=True)
class Difference:
    """Where two modules part: at which operation, on which dtypes, how; `detail` shows both."""

    op: str
    dtypes: tuple[str, ...]
    kind: str
    detail: str
    line: str
    program: Program
    reason: str = ""

    @property
    def name(self) -> str:
        return f"{self.op} | {' '.join(self.dtypes)} | {self.kind}"

    @property
    def key(self) -> tuple[str, tuple[str, ...], str]:
        return self.op, self.dtypes, self.kind

    @property
    def size(self) -> tuple[int, int]:
        return len(self.program), len(twins_programs.text(self.program))


Expected = Callable[[Difference, Sequence[Any]], bool]
"""Whether this explains a difference; its arrays are operands of the line and results, on the host."""
EXPECTED: dict[str, Expected] = {
    "a copy between places that overlap is refused": lambda d, _: "overlap: a GPU copies in no order" in d.detail,
    "not simulated: docs/gpu.md, What is missing": lambda d, _: "not simulated" in d.detail,
    "argmax and argmin promise no place among several NaNs": lambda d, arrays: (
        re.search("arg(max|min)", d.line) is not None and any(np.isnan(x).sum() > 1 for x in arrays)
    ),
    "products overflow or vanish in another order": lambda d, arrays: (
        re.search("prod", d.line) is not None and d.kind in NUMERIC and any(map(_far, arrays))
    ),
    "complex numbers that are not finite: C leaves their parts open": lambda d, arrays: (
        d.kind in NUMERIC and any(x.dtype.kind == "c" for x in arrays) and any(not np.isfinite(x).all() for x in arrays)
    ),
    "float32 below 1.2e-38 is 0 in arithmetic: CuPy compiles so": lambda d, arrays: (
        d.kind in (*NUMERIC, "shape") and any(x.dtype.char in "fF" and _vanish(x) for x in arrays)
    ),
}
"""The differences on purpose, by the reason: docs/gpu.md has them as rows."""


class Side:
    """A module with the names of one program."""

    def __init__(self, module: ModuleType) -> None:
        self.module = module
        path = JIT.get(module.__name__)
        self.names: dict[str, Any] = {"cp": module, "jit": path and importlib.import_module(path), **NAMES}
        self.given = {*self.names}

    def step(self, text: str) -> BaseException | None:
        """Run one statement; return what it raised."""
        file = f"<twins {next(_numbers)}>"
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)  # where jit finds the source
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                exec(compile(text, file, "exec"), self.names)
                self.wait()
        except Exception as error:
            return error
        finally:
            del linecache.cache[file]
        return None

    def wait(self) -> None:
        """Wait for all that the device does."""
        if self.module is not np:
            self.module.cuda.runtime.deviceSynchronize()

    def values(self) -> dict[str, list[Any]]:
        """Return what the program's names hold, on the host: arrays, numbers, and lists of them; words for an error."""
        found = {}
        for name, x in self.names.items():
            try:
                found[name] = [] if name in self.given else list(self.plain(x))
            except Exception as error:
                found[name] = [f"{type(error).__name__} when it is read"]
        return {name: values for name, values in found.items() if values}

    def plain(self, x: Any) -> Iterator[Any]:
        if isinstance(x, (self.module.ndarray, np.ndarray, np.generic)):
            yield np.asarray(x) if isinstance(x, (np.ndarray, np.generic)) else self.module.asnumpy(x)
        elif isinstance(x, (list, tuple)):
            yield from (value for part in x for value in self.plain(part))
        elif isinstance(x, (bool, int, float, complex, str, bytes)):
            yield x

    def make(self, name: str, values: Sequence[Any]) -> None:
        """Give an array these values, so that the next line starts from the same on both sides."""
        x = self.names[name]
        if isinstance(x, self.module.ndarray) and len(values) == 1 and x.size:
            x[...] = self.module.asarray(values[0])


def kinds_of(error: BaseException | None) -> list[str]:
    """Return the kinds of error as which a program may catch it, built-in ones, the narrowest first; "none"."""
    kinds = [kind.__name__ for kind in type(error).__mro__ if kind.__module__ == "builtins"]
    return ["none"] if error is None else kinds[:1] + [kind for kind in kinds[1:] if kind not in ANY]


def run(program: Program, modules: Sequence[ModuleType]) -> Difference | None:
    """Run a program on both modules, line by line; return the first difference."""
    sides = [Side(module) for module in modules]
    for side in sides:
        side.wait()  # for what a program before left under way, by an error: its memory may be given out again here
    before: dict[str, list[Any]] = {}
    for line in program:
        errors = [side.step(line.text) for side in sides]
        named = re.findall(r"\b[a-z]\b", line.text)
        arrays = [x for name in named for x in before.get(name, ()) if isinstance(x, np.ndarray)]
        dtypes = tuple(sorted({x.dtype.name for x in arrays}))
        found = partial(Difference, line.op, dtypes, line=line.text, program=program)
        if any(errors):
            kinds = [kinds_of(error) for error in errors]
            detail = "; ".join(f"{type(error).__name__}: {error}"[:200] if error else "none" for error in errors)
            if kinds[0][0] in kinds[1]:  # what catches the first catches the second
                return None
            return _judged(found(f"error {kinds[0][0]}, {kinds[1][0]}", detail), arrays)
        first, second = (side.values() for side in sides)
        for name in first.keys() | second.keys():
            one, other = first.get(name, []), second.get(name, [])
            if how := parted(one, other, line, arrays):
                results = [x for x in (*one, *other) if isinstance(x, np.ndarray)]
                return _judged(found(how, f"{name} = {one}; {other}"[:600]), [*arrays, *results])
            if _bytes(one) != _bytes(other):
                sides[1].make(name, one)
        before = first
    return None


def parted(ones: Sequence[Any], others: Sequence[Any], line: Line, arrays: Sequence[Any]) -> str:
    """Return how two lists of values differ, "" if they do not; `arrays` are the operands of the line."""
    if [type(x) for x in ones] != [type(x) for x in others]:
        return "type " + ", ".join("/".join(type(x).__name__ for x in values) for values in (ones, others))
    for x, y in zip(ones, others, strict=True):
        if not isinstance(x, np.ndarray):
            x, y = (np.asarray(value) for value in (x, y))
        if x.dtype != y.dtype and x.dtype.kind not in "US":
            return f"dtype {x.dtype}, {y.dtype}"
        if x.shape != y.shape:
            return "shape"
        if x.dtype.kind not in "fc":
            if not np.array_equal(x, y):
                return "value"
            continue
        with np.errstate(all="ignore"):
            allowed = _allowed(x, y, line, arrays)
            most = np.inf if line.close == "bits" else float(np.finfo(x.dtype).max)  # a unit above it is infinity
            for part in ("real", "imag") if x.dtype.kind == "c" else ("real",):
                a, b = (getattr(value, part).astype(np.float64).clip(-most, most) for value in (x, y))
                if ((np.isnan(a) != np.isnan(b)) & np.isfinite(allowed)).any():
                    return "nan"
                if "std" in line.text or "norm" in line.text:
                    a, b = a * a, b * b
                near = (a == b) | np.isnan(a) | np.isnan(b) | (abs(a - b) <= allowed)
                if not near.all():
                    return "value"
                if line.close == "bits" and x.dtype.kind == "f" and (np.signbit(a) != np.signbit(b))[a == 0].any():
                    return "zero's sign"
    return ""


def _allowed(x: Any, y: Any, line: Line, arrays: Sequence[Any]) -> Any:
    """By how much results may differ: units in the last place of each, or of what all operands may add up to."""
    ulps = CLOSE[line.close] * (8 if x.dtype.kind == "c" else 1)
    ulps = max(ulps, 4) if x.dtype.kind == "c" else ulps
    ends = np.finfo(x.dtype)
    if line.close in ("sum", "root"):
        floats = [np.finfo(a.dtype) for a in arrays if a.dtype.kind in "fc"]
        most = [max(1.0, float(abs(a[np.isfinite(a)].astype(complex)).max(initial=0))) for a in arrays]
        bound = float(np.prod(most, dtype=float)) * max([a.size for a in arrays], default=1)
        bound = bound * max(most, default=1.0) if line.close == "root" else bound
        tolerance = ulps * max(float(f.eps) for f in [ends, *floats]) * bound
        return tolerance if bound < min(float(f.max) for f in [ends, *floats]) else np.inf
    size = np.fmax(abs(x), abs(y)).astype(np.float64)
    size, eps = np.where(np.isnan(size), 0, np.minimum(size, float(ends.max))), float(ends.eps)
    if x.dtype.kind == "c" and re.search(r"\*\*|power", line.text):  # exp(y log x), as wide as the operands
        ulps, eps = ulps * 100, max([eps, *(float(np.finfo(a.dtype).eps) for a in arrays if a.dtype.kind in "fc")])
    return ulps * np.maximum(size * eps, float(ends.smallest_subnormal))


def _bytes(values: Sequence[Any]) -> list[Any]:
    return [x.tobytes() if isinstance(x, np.ndarray) else x for x in values]


def _far(x: Any) -> bool:
    """Whether some values are near the ends of their dtype."""
    sizes = abs(x[np.isfinite(x) & (x != 0)]) if x.dtype.kind in "fc" else np.ones(0)
    return bool(sizes.size) and bool((np.log2(sizes.astype(np.float64)) ** 2 > 100).any())


def _vanish(x: Any) -> bool:
    """Whether some values are too small to be normal numbers, or parts of them."""
    return any(bool(((a != 0) & (abs(a) < np.finfo(a.dtype).tiny)).any()) for a in (x.real, x.imag))


def _judged(found: Difference, arrays: Sequence[Any]) -> Difference:
    """The difference with the reason that `EXPECTED` has for it, if any."""
    return replace(found, reason=next((reason for reason, explains in EXPECTED.items() if explains(found, arrays)), ""))


def drawn(seed: int, chunk: int, kernels: int) -> Iterator[Program]:
    """Yield the programs of a chunk: first so many that are kernels, then those of one palette."""
    chance = Random(f"{seed} {chunk}")
    chosen = twins_programs.palette(chance)
    for number in range(CHUNK):
        yield twins_programs.program(chance, Palette((), ()) if number < kernels else chosen)


@dataclass
class Found:
    """What was run, and what differed."""

    lines: Counter[str]
    programs: int = 0
    differences: list[Difference] = field(default_factory=list)


def search(seed: int, chunk: int, kernels: int, names: Sequence[str], end: float) -> Found:
    """Run the programs of a chunk on the modules of these names, up to this time, as long as the device answers."""
    modules, found = [importlib.import_module(name) for name in names], Found(Counter())
    for program in drawn(seed, chunk, kernels):
        if time.time() > end:
            break
        found.programs += 1
        found.lines.update(line.op for line in program)
        if difference := run(program, modules):
            found.differences.append(difference)
            if not all(map(answers, modules)):
                break
    return found


def answers(module: ModuleType) -> bool:
    """Return whether the device still works: after some errors of CUDA nothing does in this process."""
    try:
        return int(module.arange(3).sum()) == 3
    except Exception:
        return False


def shrunk(difference: Difference, names: Sequence[str], end: float) -> Difference:
    """Return the difference of the same key with the smallest program found, in `SHRINK` seconds or up to this time.

    Others of the same operation and dtypes are drawn; then lines are left out.
    """
    modules, best = [importlib.import_module(name) for name in names], difference
    end = min(end, time.time() + SHRINK)

    def same(program: Program) -> None:
        nonlocal best
        if (other := run(program, modules)) and other.key == difference.key:
            best = min(best, other, key=lambda each: each.size)

    text = twins_programs.text(difference.program)
    dtypes = [name for name in twins_programs.DTYPES if re.search(rf"\b{name}\b", text)]
    ops = [{"input": "copy"}.get(op, op) for op in difference.op.split(" of ") if op != "jit"]
    chosen = Palette(ops, dtypes or twins_programs.DTYPES[:1])
    for number in range(DRAWS):
        if time.time() < end:
            same(twins_programs.program(Random(number), chosen))
    for line in reversed(best.program):
        same(tuple(other for other in best.program if other is not line))
    return best


def apart(piece: Callable[[], Any], end: float) -> Any:
    """Return what a piece of work gives in a process of its own, None if it breaks: then the others go on."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        try:
            return pool.submit(piece).result(max(1, end + GRACE - time.time()))
        except Exception as error:
            print(f"{error!r} in {piece}"[:600], file=sys.stderr)
            for process in pool._processes.values():  # one that hangs would be waited for
                process.kill()
            return None


def spread(work: Sequence[Callable[[], Any]], processes: int, end: float) -> list[Any]:
    """Return what the work gives that so many processes do at a time; what broke is left out."""
    with ThreadPoolExecutor(processes) as threads:
        return [result for result in threads.map(partial(apart, end=end), work) if result is not None]


def measured(chosen: argparse.Namespace) -> list[common.Row]:
    """Search, shrink one program for each reason and each key that has none, and return the rows."""
    names, end = (chosen.first, chosen.second), time.time() + chosen.seconds
    chunks, start, half = -(-chosen.programs // CHUNK), time.time(), end - chosen.seconds / 4
    work = [partial(search, chosen.seed, chunk, -(-chosen.kernels // chunks), names, half) for chunk in range(chunks)]
    found = spread(work, chosen.processes, half)
    took = time.time() - start
    differences = {difference.key: difference for part in found for difference in part.differences}
    shown = {difference.reason or difference.key: difference for difference in differences.values()}
    small = spread([partial(shrunk, difference, names, end) for difference in shown.values()], chosen.processes, end)
    return list(rows(found, differences | {difference.key: difference for difference in small}, chosen, took))


def rows(found: Sequence[Found], shown: Any, chosen: argparse.Namespace, seconds: float) -> Iterator[common.Row]:
    """Yield the record: the whole search, how often each operation was tried, and what differs.

    That is one row for each reason, and one for each key that has none, with the smallest program.
    """
    times = Counter(difference.key for part in found for difference in part.differences)
    lines = sum((part.lines for part in found), Counter[str]())
    wrong = sum(times[key] for key, difference in shown.items() if not difference.reason)
    facts = {"programs": sum(part.programs for part in found), "statements": lines.total(), "kernels": lines["jit"]}
    facts |= {"wrong": wrong, "expected": times.total() - wrong, "seconds": round(seconds), "seed": chosen.seed}
    yield {"section": "search", "name": f"{chosen.first} and {chosen.second}", **facts, "operations": dict(lines)}
    groups: dict[str, list[Difference]] = {}
    for difference in shown.values():
        groups.setdefault(difference.reason or difference.name, []).append(difference)
    for name, alike in sorted(groups.items()):
        least, count = min(alike, key=lambda each: each.size), sum(times[difference.key] for difference in alike)
        row = {"section": "differences", "name": name, "times": count, "wrong": int(not least.reason)}
        text = twins_programs.text(least.program).splitlines()
        yield {**row, "program": text, "detail": least.detail.splitlines()}


def main() -> int:
    """Search, print, record."""
    reader = common.parser(__doc__)
    reader.add_argument("--programs", type=int, metavar="N", help="default: 10,000, or 300 with --quick")
    reader.add_argument("--kernels", type=int, default=400, metavar="N", help="that many are kernels (default: 400)")
    reader.add_argument("--seed", type=int, default=0)
    reader.add_argument("--seconds", type=float, default=480, help="for all of it; a quarter is for shrinking")
    reader.add_argument("--processes", type=int, default=max(1, (os.cpu_count() or 1) - 2))
    reader.add_argument("--first", default="cupy", metavar="MODULE")
    reader.add_argument("--second", default="unrolled.simgpu", metavar="MODULE")
    chosen = reader.parse_args()
    chosen.programs = chosen.programs or (300 if chosen.quick else 10_000)
    for name in (chosen.first, chosen.second):
        importlib.import_module(name)  # says at once what is missing
    made = measured(chosen)
    common.print_sections(made)
    for row in made[1:]:
        if row["wrong"]:
            print(f"\n# {row['name']}", *row["program"], *(f"# {line}" for line in row["detail"]), sep="\n")
    common.save(chosen, made, **gpu_common.machine(), processes=chosen.processes)
    return int(made[0]["wrong"] > 0)


if __name__ == "__main__":
    sys.exit(main())
