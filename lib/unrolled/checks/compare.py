"""Comparing a result with the expected one: pure functions that say in words what differs and where.

They look for usual near misses, too: the right values in another order, a constant factor, a flipped axis.
"""

from __future__ import annotations

import itertools
import math
import numbers
import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

DIMENSIONS = 64  # of an array, at most
SHOWN = 1000  # numbers of an array that is shown with its numbers, where it stands in a list
BRACKETS: dict[type, tuple[str, str]] = {list: ("[", "]"), tuple: ("(", ")"), dict: ("{", "}")}


@dataclass(frozen=True)
class Mismatch:
    """Why a result is not the expected one: lines to read, and two 2-D slices to draw where that helps.

    Those of the lines that are `guesses` know the result alone: where a usual mistake is recognized, they are left out.
    """

    lines: tuple[str, ...]
    got: Array | None = None
    expected: Array | None = None
    guesses: tuple[str, ...] = ()

    @classmethod
    def of(cls, *lines: str) -> Mismatch:
        """Return a mismatch of these lines alone."""
        return cls(lines)


@dataclass(frozen=True)
class Remark:
    """What is said of a right result, such as how long it took: lines to read.

    `ratio`: how many times as fast as the reference it was, where the comparison timed both.
    """

    lines: tuple[str, ...]
    ratio: float | None = None


def mismatch(
    got: Any, expected: Any, tolerance: float, inputs: Mapping[str, Any] = MappingProxyType({})
) -> Mismatch | None:
    """Return None if `got` is right, else what is wrong with it. Advice names an argument among the `inputs`.

    Arrays must agree in type, shape and dtype, values within `tolerance` times the largest expected magnitude (exact
    for integers and booleans). For a Python float any real number is accepted, for an int any whole one, within
    `tolerance` times the expected one; tuples, lists and arrays, each for the others, are compared item by item.
    """
    if isinstance(expected, np.ndarray):
        return _array_mismatch(got, expected, tolerance, inputs)
    if isinstance(expected, (tuple, list)):
        return _sequence_mismatch(got, expected, tolerance, inputs)
    return _number_mismatch(got, expected, tolerance)


def first_mismatch(items: Iterable[tuple[str, Any, Any]], tolerance: float = 1e-4) -> Mismatch | None:
    """Return the first mismatch among (name, got, expected), its first line after the name; None if all are right."""
    for name, got, expected in items:
        if found := mismatch(got, expected, tolerance):
            first, *rest = found.lines
            return Mismatch((f"{name}: {first}", *rest), found.got, found.expected)
    return None


def agree(got: Any, expected: Any, tolerance: float) -> bool:
    """Return whether two results hold the same values, whatever their types: numbers, or None or a text in both."""
    if expected is None:
        return got is None
    if isinstance(expected, str):
        return isinstance(got, str) and str(got) == expected
    if isinstance(expected, (tuple, list)) and isinstance(got, (tuple, list)):
        return len(got) == len(expected) and all(agree(g, e, tolerance) for g, e in zip(got, expected, strict=True))
    if (theirs := as_numbers(expected)) is None:
        return False
    ours = as_numbers(got, sum(itertools.accumulate(theirs.shape, operator.mul)))
    return ours is not None and ours.shape == theirs.shape and not _wrong(ours, theirs, tolerance).any()


def changed(now: Any, before: Any) -> bool:
    """Return whether data is no longer what it was; False for what is not made of numbers, such as a function."""
    if now is before or _identical(now, before):
        return False
    if as_numbers(before) is None and isinstance(before, (tuple, list)):
        return len(now) != len(before) or any(changed(n, b) for n, b in zip(now, before, strict=True))
    if isinstance(before, dict):
        return now.keys() != before.keys() or any(changed(now[name], before[name]) for name in before)
    return as_numbers(before) is not None and not agree(now, before, 0.0)


def as_numbers(value: Any, most: float = math.inf) -> Array | None:
    """Return a number, an array, or nested lists with at most `most` lists and numbers, as an array; None otherwise."""
    if isinstance(value, str) or (isinstance(value, (list, tuple)) and not _holds_numbers(value, most)):
        return None
    try:
        array = np.asarray(value)
    except (ValueError, TypeError):  # lists of different lengths, what refuses to become an array
        return None
    return array if array.dtype.kind in "biuf" else None


def _holds_numbers(value: Sequence[Any], most: float) -> bool:
    """Whether there is nothing in nested lists but numbers and arrays of numbers, and no more than `most` of all.

    To be asked before NumPy: of texts each takes as much memory as the longest, and one complex number makes all so.
    """
    waiting = [(value, 1)]
    while waiting:
        items, depth = waiting.pop()
        for item in items:
            if isinstance(item, (list, tuple)):
                most -= 1
                waiting.append((item, depth + 1))
            elif isinstance(item, np.ndarray):
                most -= max(1, item.size) if item.dtype.kind in "biuf" else math.inf
            else:
                most -= 1 if isinstance(item, (bool, numbers.Real, np.bool_)) else math.inf
            if most < 0 or depth > DIMENSIONS:
                return False
    return True


def _number_mismatch(got: Any, expected: Any, tolerance: float) -> Mismatch | None:
    if isinstance(got, np.ndarray) and got.ndim == 0 and got.dtype.kind in "biufc":
        got = got.item()
    if isinstance(got, bool) or not isinstance(got, numbers.Real):
        return Mismatch((f"expected a number ({_text(expected)}), got {_kind(got)}",))
    if isinstance(expected, int) and got % 1 != 0:
        line = f"expected the whole number {expected}, got {shortened(got, 60)}, a {type(got).__name__}"
        helps = ("// gives whole numbers, and so does int()",)
        return Mismatch((line, *(helps if got // 1 == expected else ())))
    if isinstance(expected, float):
        got = _as_float(got)  # or a difference to a float16 would be rounded to float16
    if got == expected or (math.isfinite(expected) and abs(got - expected) <= tolerance * abs(expected)):
        return None
    return Mismatch(("got {}, expected {}".format(*_both_texts(got, expected)),))


def _as_float(number: Any) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def _sequence_mismatch(got: Any, expected: Any, tolerance: float, inputs: Mapping[str, Any]) -> Mismatch | None:
    kind = type(expected).__name__
    is_numbers = isinstance(got, np.ndarray) and got.shape[:1] == (len(expected),) and got.dtype.kind in "biuf"
    if is_numbers and not any(isinstance(each, np.ndarray) for each in expected):
        got = list(np.asarray(got))
    if not isinstance(got, (list, tuple)):
        return Mismatch((f"expected a {kind} of {len(expected)}, got {_kind(got)}",))
    if len(got) != len(expected):
        return Mismatch(
            (f"expected {len(expected)} items, got {len(got)}: {_text(got)}", *_nesting_advice(got, expected))
        )
    for index, (item, wanted) in enumerate(zip(got, expected, strict=True)):
        if found := mismatch(item, wanted, tolerance, inputs):
            first, *rest = found.lines
            alike = ("the items are right, in another order",) if _sorted_alike(got, expected) else ()
            helps = (*alike, *_nesting_advice(got, expected))
            return replace(found, lines=(f"item {index} of {len(expected)}: {first}", *rest, *helps))
    return None


def _nesting_advice(got: Any, expected: Any) -> Iterator[str]:
    """Recognize a list that became a single item of the list it should have lengthened."""
    nested = next((place for place, item in enumerate(got) if isinstance(item, (list, tuple))), None)
    if nested is not None and all(isinstance(item, numbers.Real) for item in expected):
        kind = type(got[nested]).__name__
        yield f"item {nested} is a {kind} itself: append adds it as one item, extend or + each of its items"


def _sorted_alike(got: Any, expected: Any) -> bool:
    try:
        return bool(sorted(got) == sorted(expected) and list(got) != list(expected))
    except (TypeError, ValueError):  # items that have no order, such as arrays
        return False


def _array_mismatch(got: Any, expected: Array, tolerance: float, inputs: Mapping[str, Any]) -> Mismatch | None:
    if not isinstance(got, np.ndarray):
        helps = ("the values are right: return them as an array (np.stack makes one of a list of arrays)",)
        says = f"expected an array of shape {expected.shape}, got {_kind(got)}"
        return Mismatch((says, *(helps if agree(got, expected, tolerance) else ())))
    got = np.asarray(got)  # a subclass, such as a masked array, may compare in a way of its own
    if got.dtype.kind not in "biufc":
        return Mismatch((f"expected dtype {expected.dtype}, got {got.dtype}",))
    if got.shape != expected.shape:
        guesses = _order_advice(got, expected, tolerance)
        return Mismatch((f"shape {got.shape}, expected {expected.shape}", *guesses), guesses=guesses)
    wrong = _wrong(got, expected, tolerance)
    if got.dtype == expected.dtype and not wrong.any():
        return None
    dtypes = f"dtype is {got.dtype}, expected {expected.dtype}"
    if not wrong.any():
        return Mismatch((f"the values are right, but {dtypes}", *_dtype_advice(got, expected, inputs)))
    where = tuple(int(i) for i in np.argwhere(wrong)[0])
    texts = _both_texts(got[where], expected[where])
    guesses = _order_advice(got, expected, tolerance) or _scale_advice(got, expected, tolerance)
    lines = (
        f"shape {got.shape} as expected, but {int(wrong.sum())} of {wrong.size} values differ",
        f"first at {list(where)}: got {texts[0]}, expected {texts[1]}",
        *((f"besides, {dtypes}",) if got.dtype != expected.dtype else ()),
        *_nan_advice(got, expected),
        *guesses,
    )
    if got.ndim < 2:
        return Mismatch(lines, guesses=guesses)
    return Mismatch(lines, got[where[:-2]], expected[where[:-2]], guesses)


def _dtype_advice(got: Array, expected: Array, inputs: Mapping[str, Any]) -> Iterator[str]:
    """What helps, by the first argument that has the expected dtype."""
    alike = (name for name, value in inputs.items() if getattr(value, "dtype", None) == expected.dtype)
    dtype = next((f"{name}.dtype" for name in alike), f"np.{expected.dtype}")
    if got.dtype == np.float64:
        made = "np.zeros, np.empty, np.ones, and np.array of Python numbers"
        yield f"{made} make float64 unless you give them a dtype, as in dtype={dtype}"
        scalar = "an np.float64, as np.sqrt, np.exp or np.log of a Python number is, and what it multiplies"
        yield f"so does {scalar}: take math.sqrt, or ** 0.5, or end with .astype({dtype})"
    elif got.dtype.kind in "biuf":
        yield f"the result takes the dtype of what it is made of: make it with dtype={dtype}"
    elif got.dtype.kind == "c":
        yield "the real part is in .real"


def _wrong(got: Array, expected: Array, tolerance: float) -> NDArray[np.bool_]:
    """Which values differ; NaN equals NaN only in the same place."""
    if expected.size == 0 or _identical(got, expected):
        return np.zeros(expected.shape, bool)
    if not np.issubdtype(expected.dtype, np.inexact):
        return np.asarray(got != expected)
    finite = expected[np.isfinite(expected)]
    scale = float(np.abs(finite).max()) if finite.size else 0.0
    with np.errstate(invalid="ignore"):  # inf - inf
        wide = got.astype(np.complex128 if got.dtype.kind == "c" else np.float64)
        near = np.abs(wide - expected.astype(np.float64)) <= tolerance * scale
    same = (got == expected) | (np.isnan(got) & np.isnan(expected)) | near
    return np.asarray(~same)


def _identical(x: Any, y: Any) -> bool:
    """Whether two arrays are the same in every byte: most that are equal are, and this takes no time."""
    return type(x) is type(y) is np.ndarray and x.dtype == y.dtype and x.shape == y.shape and x.tobytes() == y.tobytes()


def _nan_advice(got: Array, expected: Array) -> Iterator[str]:
    if bad := int((np.isnan(got) & ~np.isnan(expected)).sum()):
        yield f"{bad} of your values are NaN: a division 0/0, a log of 0, or memory never written (np.empty)?"


def _telling(expected: Array) -> bool:
    """Whether an array has enough different values for an order to be recognized."""
    return expected.size >= 3 and len(np.unique(expected)) >= 3


def _order_advice(got: Array, expected: Array, tolerance: float) -> tuple[str, ...]:
    """Recognize the right values in another shape or order: permuted or flipped axes, or merely the same multiset."""
    if got.size != expected.size or not _telling(expected):
        return ()
    same = tuple(range(expected.ndim))
    # The arrays that have got's own shape first, then no permutation at all, then what a reshape makes of the others.
    permuted = [(axes, expected.transpose(axes)) for axes in itertools.permutations(same)]
    for axes, turned in sorted(permuted, key=lambda each: (each[1].shape != got.shape, each[0] != same)):
        if (axes, got.shape) == (same, expected.shape):
            continue
        if not _wrong(got.reshape(turned.shape), turned, tolerance).any():
            if axes == same:
                return ("your values are right and in order, only the shape is not",)
            back = ", ".join(map(str, np.argsort(axes)))
            first = "" if got.shape == turned.shape else f".reshape({', '.join(map(str, turned.shape))})"
            return (f"your values are right in another order of the axes: y{first}.transpose({back}) puts them right",)
    flips = (axes for count in range(1, got.ndim + 1) for axes in itertools.combinations(same, count))
    for flipped in flips if got.shape == expected.shape else ():
        if not _wrong(np.flip(got, flipped), expected, tolerance).any():
            return (f"your values are right, but reversed along axis {', '.join(map(str, flipped))}",)
    if not _wrong(np.sort(got, axis=None), np.sort(expected, axis=None), tolerance).any():
        return ("your values are right, in another order",)
    return ()


def _scale_advice(got: Array, expected: Array, tolerance: float) -> tuple[str, ...]:
    """Recognize a constant factor or a constant offset."""
    if not _telling(expected) or got.dtype.kind == "c" or not np.isfinite(got).all():
        return ()
    at = np.unravel_index(np.abs(expected).argmax(), expected.shape)
    factor = float(got[at]) / float(expected[at])
    if factor and not _wrong(got / factor, expected, tolerance).any():
        return (f"every value is {factor:.6g} times the expected one",)
    offset = float(got[at]) - float(expected[at])
    if not _wrong(got - offset, expected, tolerance).any():
        return (f"every value is off by {offset:.4g}",)
    return ()


def _kind(value: Any) -> str:
    if value is None:
        return "None: is the return statement missing?"
    name = type(value).__name__
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape}"
    if isinstance(value, Iterator):
        return f"a {name}, whose items are not computed yet: return them all at once"
    text = _text(value)
    return f"an object of type {name}" if text.startswith("<") else f"{name} {text}"


def _both_texts(got: Any, expected: Any) -> tuple[str, str]:
    """Two different numbers in as few digits, from 4 on, as show the difference."""
    if isinstance(got, (float, np.floating)) and isinstance(expected, (float, np.floating)):
        for digits in range(4, 18):
            texts = f"{got:.{digits}g}", f"{expected:.{digits}g}"
            if texts[0] != texts[1]:
                return texts
    return _text(got), _text(expected)


def _text(value: Any) -> str:
    if isinstance(value, (float, np.floating)):
        return f"{value:.4g}"
    return shortened(value, 60)


def shortened(value: Any, length: int) -> str:
    """Return `str(value)` on one line, cut to `length`. Never raises; looks at no more of a list than it shows."""
    try:
        text = " ".join(_beginning(value, 50 * length).split())
    except Exception as error:
        return f"(its text cannot be shown: {type(error).__name__})"
    return text if len(text) <= length else text[: length - 3] + "..."


def _beginning(value: Any, length: int) -> str:
    """The first `length` characters of `str(value)`, perhaps some more."""
    if type(value) not in BRACKETS:
        return str(value)[:length]
    text = ""
    for piece in _pieces(value):
        text += piece
        if len(text) > length:
            break
    return text


def _pieces(value: Any) -> Iterator[str]:
    """What `repr(value)` consists of; large arrays are told by their shapes."""
    if isinstance(value, np.ndarray) and value.size > SHOWN:
        yield f"array of shape {value.shape}"
    elif type(value) in BRACKETS:
        first, last = BRACKETS[type(value)]
        yield first
        for place, item in enumerate(value):
            yield (", " if place else "") + (f"{item!r}: " if type(value) is dict else "")
            yield from _pieces(value[item] if type(value) is dict else item)
        yield ",)" if type(value) is tuple and len(value) == 1 else last
    else:
        yield repr(value)
