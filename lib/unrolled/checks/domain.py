"""Which inputs of a legal kind differ in a way that matters: sizes of one, more columns than rows, ties, zeros.

A spec's `domain` draws any legal inputs. A check takes a few of them that have between them every feature that many
have: so an answer that is wrong for a single sample, or where there are more stages than micro-batches, meets them at
every call. `unrolled prove` asks of the same features whether a check would notice.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from typing import Any, cast

import numpy as np

Inputs = dict[str, Any]
Drawing = Callable[[np.random.Generator], Inputs]
State = Mapping[str, Any]  # of a generator

SAMPLE, COMMON = 100, 0.03
"""Inputs that are looked at once, and the share of these that has what each check shows. Of features that a tenth of
all inputs have, one in 500 is not that frequent among them."""
FEWEST, MOST = 2, 12  # inputs of a check, besides one of a fixed case with other values
TRIED = 40  # inputs of the sample of which each of these is the best
LIST = 8  # numbers that are drawn at once to decide on sizes, at most
LARGE, MANY = 6, 1000  # a size above these is one that no loop was unrolled for by hand, or that nobody looked at
VALUES = 200  # of an array that are looked at
FLOAT32 = float(np.finfo(np.float32).max)


def edge_size(rng: np.random.Generator, high: int, low: int = 1) -> int:
    """Return a size from low to high: the lowest in a quarter of draws, the one above in another, else any."""
    return low + min(int(rng.integers(0, 2)), high - low) if rng.random() < 0.5 else int(rng.integers(low, high + 1))


KINDS = (  # dtype, lowest and highest in eighths, and by which powers of 2 the first two arrays are larger
    *(("float32", -32, 32, 0, 0),) * 2,
    ("float64", 1, 32, 0, 0),
    ("float64", 1, 32, 400, -200),  # neither these nor their products are numbers in float32
    ("float32", -32, 32, 10, -10),
    ("float32", -32, -1, -10, 10),
)


def any_arrays(rng: np.random.Generator, **shapes: tuple[int, ...]) -> Inputs:
    """Draw arrays of these shapes and one dtype: eighths from -4 to 4, at times of one sign, or the first tiny or huge.

    The second is then huge or tiny, so that an error of 1 shows in their products. In float32 a sum of a few hundred of
    these is exact: a right answer is right in whatever order it adds, also where all of a result cancels. In float64
    they may be beyond float32, so that whatever is computed in that is infinite or 0.
    """
    dtype, lowest, highest, *powers = KINDS[rng.integers(len(KINDS))]
    powers += [0] * len(shapes)
    return {
        name: (rng.integers(lowest, highest + 1, shape) * 2.0 ** (power - 3)).astype(dtype)
        for (name, shape), power in zip(shapes.items(), powers, strict=False)
    }


def cover(draw: Drawing, seed: tuple[int, ...], shown: Container[str] = ()) -> list[Drawing]:
    """Return what draws a few inputs, at most `MOST`, with each feature that is common in the domain but those `shown`.

    They are like those of a sample that have what is missing: alike in what single numbers decide, such as sizes, with
    other values unless it is these that count. Any inputs fill up to `FEWEST`.
    """
    bits, having = _common(draw)
    rng, chosen = np.random.default_rng(seed), list[Drawing]()
    missing = sum(bit for feature, bit in bits.items() if feature not in shown)
    while missing and len(chosen) < MOST:
        alike = having[missing & -missing]
        tried = (alike[place] for place in rng.integers(len(alike), size=TRIED).tolist())
        state, likely = max(tried, key=lambda each: (each[1] & missing).bit_count())
        inputs, again = _drawn(draw, rng, state)
        if likely & missing & ~_mask(bits, features_of(inputs)):
            inputs, again = _drawn(draw, _from(state))
        chosen.append(_once(inputs, again))
        missing &= ~likely
    return [*chosen, *(_once(*_drawn(draw, rng)) for _ in range(FEWEST - len(chosen)))]


@functools.cache
def _common(draw: Drawing) -> tuple[dict[str, int], dict[int, list[tuple[State, int]]]]:
    """A bit for each common feature, the rarest lowest; by bit, the inputs that have it: their decisions and bits."""
    rng, found = np.random.default_rng(0), list[tuple[State, set[str]]]()
    for _ in range(SAMPLE):
        state = rng.bit_generator.state
        found.append((state, set(features_of(draw(rng)))))
    counts = Counter(feature for _, features in found for feature in features)
    common = sorted((count, feature) for feature, count in counts.items() if count >= COMMON * SAMPLE)
    bits = {feature: 1 << place for place, (_, feature) in enumerate(common)}
    sample = [(state, _mask(bits, features)) for state, features in found]
    return bits, {bit: [each for each in sample if each[1] & bit] for bit in bits.values()}


def _mask(bits: Mapping[str, int], features: Iterable[str]) -> int:
    return sum({bits.get(feature, 0) for feature in features})


def shown_by(inputs: Inputs) -> set[str]:
    """Return the features of inputs that a check has shown with them: none where an error of 1 does not show."""
    features = set(features_of(inputs))
    return set() if any(feature.endswith(" is large") for feature in features) else features


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
            yield from [f"{name} == 0"] if value == 0 else ()
            yield f"{name} % 1 == 0" if value % 1 == 0 else f"{name} % 1 > 0"
        elif isinstance(getattr(value, "shape", None), tuple):
            numbers = isinstance(value, np.ndarray) and value.dtype.kind in "iuf"
            yield from _shaped(name, value.shape, value.dtype if numbers else None)
            yield from _values(name, value) if numbers else ()
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


def _drawn(draw: Drawing, values: Any, decisions: State | None = None) -> tuple[Inputs, Callable[[], Inputs]]:
    """Inputs drawn from a generator, or from decisions and it, and what draws the same again."""
    state = values.bit_generator.state
    inputs = draw(values if decisions is None else cast(Any, _Deciding(_from(decisions), values)))
    return inputs, lambda: _drawn(draw, _from(state), decisions)[0]


def _once(first: Inputs, again: Callable[[], Inputs]) -> Drawing:
    waiting = [first]
    return lambda _: waiting.pop() if waiting else again()


_SEED = np.random.SeedSequence(0)  # it takes most of the time in which a generator is made


def _from(state: State) -> np.random.Generator:
    bits: Any = np.random.PCG64(_SEED)
    bits.state = state
    return np.random.Generator(bits)


def _decided(name: str) -> Any:
    own = getattr(np.random.Generator, name)

    def drawn(self: _Deciding, *arguments: Any, **options: Any) -> Any:
        decided = own(self.decisions, *arguments, **options)
        few = getattr(decided, "ndim", 0) < 2 and getattr(decided, "size", 1) <= LIST
        return decided if few else own(self, *arguments, **options)

    return drawn


class _Deciding(np.random.Generator):
    """Draws single numbers and short lists, which decide on sizes, from another generator."""

    def __init__(self, decisions: np.random.Generator, values: np.random.Generator) -> None:
        super().__init__(values.bit_generator)
        self.decisions = decisions

    integers, random, choice = map(_decided, ("integers", "random", "choice"))


@functools.lru_cache(maxsize=10_000)
def _sized(name: str, size: int) -> tuple[str, ...]:
    exact = (f"{name} == {size}",) if size in (0, 1, 2) else ()
    return (*exact, *(f"{name} > {than}" for than in (LARGE, MANY) if size > than), f"{name} % 2 == {size % 2}")


@functools.lru_cache(maxsize=10_000)
def _shaped(name: str, shape: tuple[int, ...], dtype: np.dtype[Any] | None) -> tuple[str, ...]:
    sizes = {f"{name}.shape[{axis}]": size for axis, size in enumerate(shape)}
    typed = () if dtype is None else (f"{name}.dtype == {dtype.name!r}",)
    return (*typed, *_compared(sizes), *(each for axis, size in sizes.items() for each in _sized(axis, size)))


def _compared(numbers: Mapping[str, int]) -> Iterator[str]:
    for (one, first), (other, second) in itertools.pairwise(numbers.items()):
        sign = "==" if first == second else "<" if first < second else ">"
        yield f"{one} {sign} {other}"


def _values(name: str, x: np.ndarray[Any, Any]) -> Iterator[str]:
    values = x.ravel()[:VALUES].tolist()
    if not values:
        return
    if not math.isfinite(sum(values)):
        yield f"{name} is not finite"
        return
    lowest, highest = min(values), max(values)
    if x.dtype.kind == "f":
        if 0 < max(-lowest, highest) < 1e-2:
            yield f"{name} is small"
        if max(-lowest, highest) > 1e3:
            yield f"{name} is large"
        if max(-lowest, highest) > FLOAT32 and len(values) > 4:  # few might count nowhere, as beside padding
            yield f"{name} is beyond float32"
    if 0 in values:
        yield f"0 in {name}"
    if len(set(values)) < len(values):
        yield f"{name} has ties"
    if lowest >= 0:
        yield f"{name}.min() >= 0"
    if highest <= 0:
        yield f"{name}.max() <= 0"
