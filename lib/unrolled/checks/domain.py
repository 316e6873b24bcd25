"""Which inputs of a legal kind differ in a way that matters: sizes of one, more columns than rows, ties, zeros.

A spec's `domain` draws any legal inputs. A check takes a few of them that have between them every feature that many
have: so an answer that is wrong for a single sample, or where there are more stages than micro-batches, meets them at
every call. `unrolled prove` asks of the same features whether a check would notice.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

Inputs = dict[str, Any]
Drawing = Callable[[np.random.Generator], Inputs]

DRAWN = 100
"""Inputs of which a check takes a few. What a tenth of all inputs have is missing among these once in 38,000 times."""
MOST = 12  # inputs that it takes, at most
LARGE = 6  # a size above this is one that no loop was unrolled for by hand
VALUES = 1000  # of an array that are looked at


def edge_size(rng: np.random.Generator, high: int, low: int = 1) -> int:
    """Return a size from low to high: the lowest in a quarter of draws, the one above in another, else any."""
    return low + min(int(rng.integers(0, 2)), high - low) if rng.random() < 0.5 else int(rng.integers(low, high + 1))


KINDS = (  # dtype, lowest and highest in eighths, and by which power of 2 the first array is larger
    *(("float32", -32, 32, 0),) * 3,
    ("float64", -32, 32, 0),
    ("float32", 1, 32, 0),
    ("float32", -32, -1, 0),
    ("float32", -32, 32, 10),
    ("float32", -32, 32, -10),
)


def any_arrays(rng: np.random.Generator, **shapes: tuple[int, ...]) -> Inputs:
    """Draw arrays of these shapes and one dtype: eighths from -4 to 4, at times of one sign, or the first tiny or huge.

    The second is then huge or tiny, so that an error of 1 shows in their products. In float32 a sum of a few hundred of
    these is exact: a right answer is right in whatever order it adds, also where all of a result cancels.
    """
    dtype, lowest, highest, power = KINDS[rng.integers(len(KINDS))]
    powers = (power, -power, *[0] * len(shapes))
    return {
        name: (rng.integers(lowest, highest + 1, shape) * 2.0 ** (power - 3)).astype(dtype)
        for (name, shape), power in zip(shapes.items(), powers, strict=False)
    }


@functools.lru_cache(maxsize=1000)
def cover(draw: Drawing, seed: tuple[int, ...]) -> list[int]:
    """Return indices i of a few inputs that have between them every feature that one of `DRAWN` has, at most `MOST`.

    Those inputs are what `draw` makes of a generator with the seed (*seed, i).
    """
    drawn = [frozenset(features_of(draw(np.random.default_rng([*seed, index])))) for index in range(DRAWN)]
    missing, chosen = set[str]().union(*drawn), list[int]()
    while missing and len(chosen) < MOST:
        best = max(range(DRAWN), key=lambda index: len(drawn[index] & missing))
        missing -= drawn[best]
        chosen.append(best)
    return chosen


def features_of(inputs: Mapping[str, Any]) -> Iterator[str]:
    """Yield what inputs are like, as conditions in Python: "x.shape[0] == 1", "stages > micro_batches", "0 in x"."""
    sizes, whole = dict[str, int](), dict[str, int]()
    for name, value in inputs.items():
        if isinstance(value, (bool, np.bool_, str)) or value is None:
            yield f"{name} is {value!r}"
        elif isinstance(value, (int, np.integer)):
            whole[name] = int(value)
        elif isinstance(value, float):
            yield f"{name} < 1" if value < 1 else f"{name} >= 1"
            yield f"{name} % 1 == 0" if value % 1 == 0 else f"{name} % 1 > 0"
        elif isinstance(getattr(value, "shape", None), tuple):
            shape = {f"{name}.shape[{axis}]": size for axis, size in enumerate(value.shape)}
            sizes |= shape
            yield from _compared(shape)
            if isinstance(value, np.ndarray) and value.dtype.kind in "iuf":
                yield f"{name}.dtype == {value.dtype.name!r}"
                yield from _values(name, value)
        elif isinstance(value, (list, tuple)):
            sizes[f"len({name})"] = len(value)
            if len(value) <= 3 and all(isinstance(item, (int, np.integer)) for item in value):
                whole |= {f"{name}[{index}]": int(item) for index, item in enumerate(value)}
            for item in value:
                if isinstance(item, tuple):  # the arguments of a rank, say: which one does not matter
                    yield from features_of({f"{name}[][{place}]": each for place, each in enumerate(item)})
    for name, size in (sizes | whole).items():
        yield from _sized(name, size)
    yield from _compared(whole)


@functools.lru_cache(maxsize=10_000)
def _sized(name: str, size: int) -> tuple[str, ...]:
    exact = (f"{name} == {size}",) if size in (0, 1, 2) else ()
    return (*exact, *((f"{name} > {LARGE}",) if size > LARGE else ()), f"{name} % 2 == {size % 2}")


def _compared(numbers: Mapping[str, int]) -> Iterator[str]:
    for (one, first), (other, second) in itertools.pairwise(numbers.items()):
        sign = "==" if first == second else "<" if first < second else ">"
        yield f"{one} {sign} {other}"


def _values(name: str, x: np.ndarray[Any, Any]) -> Iterator[str]:
    values = x.ravel()[:VALUES]
    if not values.size:
        return
    if x.dtype.kind == "f" and not np.isfinite(values).all():
        yield f"{name} is not finite"
        return
    distinct = set(values.tolist())
    lowest, highest = min(distinct), max(distinct)
    if x.dtype.kind == "f":
        if 0 < max(-lowest, highest) < 1e-2:
            yield f"{name} is small"
        if max(-lowest, highest) > 1e3:
            yield f"{name} is large"
    if 0 in distinct:
        yield f"0 in {name}"
    if len(distinct) < values.size:
        yield f"{name} has ties"
    if lowest >= 0:
        yield f"{name}.min() >= 0"
    if highest <= 0:
        yield f"{name}.max() <= 0"
