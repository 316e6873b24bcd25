"""What may have led to a wrong result, from the reference and the inputs alone, where no usual mistake of the spec did.

Three ways to find out: the reference gives the same result with one argument changed (zeros for the bias, one padding
less, two arguments exchanged); it does so with one slip in its code, of which only the kind is named; or the values are
wrong in a telling place, such as the last row.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from .compare import agree, as_numbers, shortened
from .domain import Inputs
from .mistakes import Function
from .mutants import mutants

DIFFERENCE = re.compile(
    r"values differ$|first at \[|got .+, expected |expected .+, got [^:]+$|^(.+: )?shape \(.*\), expected|^the call: "
    r"|^besides, dtype|^this is item "
)
"""Lines that say how a result differs, and not what may have caused that."""
USUAL = (0.0, 0.5, 0.8, 0.95, 0.99, 1.0, *(10.0**-n for n in range(1, 11)))  # for what has a default
NEARLY = 0.05  # of a number: what is no further off lacks no large term
SMALL = 50_000  # numbers in all inputs: with more, the reference is not called again and again

Array = np.ndarray[Any, Any]


def is_bare(lines: Iterable[str]) -> bool:
    """Return whether lines say no more than how a result differs."""
    return all(DIFFERENCE.search(line) for line in lines)


def of_arguments(
    got: Any, inputs: Inputs, called: Callable[..., Any], tolerance: float, reference: Function
) -> str | None:
    """Return with which argument, or default, changed the reference gives `got`, in words; None if with none.

    `called(name=value)` is what it gives then; it may raise.
    """
    calls = (
        (f"this is the right result {text}", functools.partial(called, **changed))
        for text, changed in itertools.chain(_changed_arguments(inputs), _changed_defaults(reference, inputs))
    )
    return _leading_to(got, inputs, calls, tolerance)


def of_slips(
    got: Any, inputs: Inputs, called: Callable[..., Any], answers: Sequence[Function], tolerance: float
) -> str | None:
    """Return the kind of slip with which one of the answers gives `got`, in words; None if none does with any.

    Slips in what is done to a piece of the arguments, such as to one of four gates, are tried with the first answer.
    `called(function, name=value)` is the result of a function in the place of the learner's, with arguments changed.
    """
    slips = (
        (f"right code gives this if {kind}", functools.partial(called, function))
        for answer in answers
        for kind, function in _slipped(answer)
    )
    pieces = (
        (f"this is the right result {text}", functools.partial(called, answers[0], **changed))
        for text, changed in _changed_pieces(inputs)
    )
    return _leading_to(got, inputs, itertools.chain(slips, pieces), tolerance)


def _leading_to(
    got: Any, inputs: Inputs, calls: Iterable[tuple[str, Callable[[], Any]]], tolerance: float
) -> str | None:
    """The text of the first call that gives `got`. Each may raise; with many inputs none is made."""
    if sum(np.size(x) for x in inputs.values() if isinstance(x, np.ndarray)) > SMALL:
        return None
    for text, call in calls:
        try:
            with np.errstate(all="ignore"):
                usual = call()
        except Exception:  # not every change is legal, and most slips fit no inputs
            continue
        if agree(got, usual, tolerance):
            return text
    return None


@functools.lru_cache(maxsize=100)
def _slipped(reference: Function) -> tuple[tuple[str, Function], ...]:
    """The reference with each slip in its code; none where a loop might then never end."""
    names = dict[str, Any]()
    try:
        source = "\n\n".join(_sources(reference, names))
    except (OSError, TypeError):  # no function of Python's, or one without a file
        return ()
    found = []
    for mutant in mutants(source) if "while " not in source else ():
        space = dict(names)
        exec(compile(mutant.source, f"<{reference.__name__} with a slip>", "exec"), space)
        found.append((mutant.kind, space[reference.__name__]))
    return tuple(found)


def _sources(function: Any, names: dict[str, Any]) -> Iterator[str]:
    """Yield the sources of a function and of the library's that it calls, and gather the names that all of them use."""
    source = textwrap.dedent(inspect.getsource(function))
    if not source.startswith("def ") or function.__closure__ or function.__name__ in names.get(DONE, ()):
        return
    names.setdefault(DONE, set()).add(function.__name__)
    names |= {name: value for name, value in function.__globals__.items() if name not in names}
    for name in function.__code__.co_names:
        other = function.__globals__.get(name)
        if inspect.isfunction(other) and other.__module__.startswith("unrolled.") and other.__name__ == name:
            yield from _sources(other, names)
    yield source


DONE = "functions whose sources are there"


def _changed_defaults(reference: Function, inputs: Inputs) -> Iterator[tuple[str, Inputs]]:
    """Change what is left to a default to a usual value."""
    for name, each in inspect.signature(reference).parameters.items():
        if isinstance(each.default, float) and name not in inputs:
            yield from ((f"for {name}={x:g}: leave its default at {each.default:g}", {name: x}) for x in USUAL)


def _changed_arguments(inputs: Mapping[str, Any]) -> Iterator[tuple[str, Inputs]]:
    for name, value in inputs.items():
        for text, other in _others(name, value):
            yield text, {name: other}
    arrays = [(name, x.shape) for name, x in inputs.items() if isinstance(x, np.ndarray)]
    for index, (one, shape) in enumerate(arrays):
        for other in (name for name, theirs in arrays[index + 1 :] if theirs == shape):
            yield f"for {one} and {other} exchanged", {one: inputs[other], other: inputs[one]}


def _changed_pieces(inputs: Mapping[str, Any]) -> Iterator[tuple[str, Inputs]]:
    """Change one of two, three or four equal pieces along an axis: of one array, or of all that have the same size."""
    arrays = {name: x for name, x in inputs.items() if isinstance(x, np.ndarray) and x.dtype.kind == "f" and x.size}
    groups: list[tuple[str, ...]] = [(name,) for name in arrays]
    for first in (0, -1):
        groups += [tuple(n for n, y in arrays.items() if y.shape[first:] == x.shape[first:]) for x in arrays.values()]
    for names in dict.fromkeys(groups):
        for axis in range(-1, -1 - min(arrays[name].ndim for name in names), -1):
            sizes = {arrays[name].shape[axis] for name in names}
            count = next((count for count in (4, 3, 2) if len(sizes) == 1 and min(sizes) % count == 0), 0)
            for place in range(count):
                where = f"in piece {place} of {count} along axis {axis} of {' and '.join(names)}"
                for text, other, factor in (
                    (f"for zeros {where}: is a term left out there?", place, 0),
                    (f"for another sign {where}", place, -1),
                    *((f"for piece {at} {where}: is an index wrong?", at, 1) for at in range(count) if at != place),
                ):
                    yield text, {name: _with_piece(arrays[name], axis, count, place, other, factor) for name in names}


def _with_piece(x: Array, axis: int, count: int, place: int, other: int, factor: int) -> Array:
    """An array with `factor` times another of its pieces in a piece's place."""
    pieces = np.split(x, count, axis)
    pieces[place] = factor * pieces[other]
    return np.concatenate(pieces, axis)


def _others(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield what may stand in a value's place, and how that is said."""
    if isinstance(value, (bool, np.bool_)):
        yield f"for {name}={not value}", not value
    elif isinstance(value, (int, float, np.integer, np.floating)):
        for other in dict.fromkeys((0, 1, value - 1, value + 1, -value, 2 * value)):
            if other != value:
                yield f"for {name}={other:g}, and {name} is {value:g}", type(value)(other)
    elif isinstance(value, np.ndarray) and value.size and value.dtype.kind in "iuf":
        yield f"for a {name} of zeros: is {name} used?", np.zeros_like(value)
        yield f"for -{name}: a sign is wrong", -value
        yield f"for 2 * {name}: is it counted twice?", 2 * value
        yield (
            f"for a {name} that is the same in each place, its first value: an index is missing",
            value * 0 + value.flat[0],
        )
        for axis in range(value.ndim):
            if value.shape[axis] > 1:
                yield f"for {name} in reverse along axis {axis}", np.flip(value, axis).copy()
                yield f"for the first of {name} alone along axis {axis}", _first(value, axis)
        for axis in range(value.ndim - 1):
            if value.shape[axis] == value.shape[axis + 1]:
                turned = value.swapaxes(axis, axis + 1).copy()
                yield f"for {name} with axes {axis} and {axis + 1} exchanged", turned
    elif isinstance(value, (list, tuple)) and value:
        for text, other in (
            *((f"for no {name}", value[:0]), (f"for the first of {name} alone", value[:1])),
            *((f"for the last of {name} alone", value[-1:]), (f"for {name} without the last", value[:-1])),
            (f"for {name} in reverse", value[::-1]),
        ):
            if len(other) != len(value) or "reverse" in text:
                yield text, other
    elif value is not None and hasattr(value, "shape"):
        yield f"without {name}", None


def _first(x: Array, axis: int) -> Array:
    y: Array = x.copy()
    rest = [slice(None)] * x.ndim
    rest[axis] = slice(1, None)
    y[tuple(rest)] = 0
    return y


def of_places(got: Any, expected: Any, inputs: Mapping[str, Any], tolerance: float) -> str | None:
    """Return what is telling about the values that are wrong, in words; None if there is nothing."""
    if isinstance(expected, (tuple, list)) and isinstance(got, (tuple, list)) and len(got) == len(expected):
        places = [place for place, pair in enumerate(zip(got, expected, strict=True)) if not agree(*pair, tolerance)]
        if not places:
            return None
        alone = f"item {places[0]} alone is wrong: how do you get the others?" if 1 == len(places) < len(got) else None
        return of_places(got[places[0]], expected[places[0]], inputs, tolerance) or alone
    ours, right = as_numbers(got, SMALL), as_numbers(expected, SMALL)
    if ours is None or right is None or not right.size:
        return None
    for name, x in inputs.items():
        if isinstance(x, np.ndarray) and x.shape == ours.shape and np.array_equal(x, ours):
            return f"this is {name} as it came in"
    if ours.shape != right.shape:
        return _of_shape(ours.shape, right.shape, inputs)
    if not right.ndim:
        return _of_numbers(float(ours), float(right))
    if not ours.any():
        return "all your values are 0: is anything written into the result?"
    scale = float(np.abs(right[np.isfinite(right)]).max(initial=0.0))
    with np.errstate(invalid="ignore"):
        wrong = ~(np.abs(ours.astype(float) - right) <= max(tolerance * scale, 0.0)) & ~(
            np.isnan(ours) & np.isnan(right)
        )
    alone = _of_numbers(float(ours.item()), float(right.item())) if right.size == 1 else None
    return next(_of_wrong(ours.astype(float), right.astype(float), wrong, scale), alone)


def _of_shape(ours: tuple[int, ...], right: tuple[int, ...], inputs: Mapping[str, Any]) -> str | None:
    if len(ours) != len(right):
        return f"yours has {len(ours)} axes, not {len(right)}: an index, a sum or a reshape is missing, or one too many"
    for axis, (one, other) in enumerate(zip(ours, right, strict=True)):
        if one != other:
            names = [
                f"{name}.shape[{at}]"
                for name, x in inputs.items()
                for at, size in enumerate(getattr(x, "shape", ()))
                if size == one
            ]
            like = f", which is the size {names[0]}" if names else ""
            return f"axis {axis} is {abs(one - other)} too {'long' if one > other else 'short'}{like}"
    return None


def _of_numbers(got: float, right: float) -> str | None:
    if abs(got + right) <= 1e-6 * abs(right):
        return "the sign is wrong"
    if abs(abs(got - right) - 1) < 1e-9:
        return f"this is one too {'many' if got > right else 'few'}"
    if right and np.isfinite(got):
        for name, ratio in (("times", got / right), ("of it", right / got if got else 0.0)):
            if ratio > 1 and abs(ratio - round(ratio)) < 1e-6:
                return f"this is {round(ratio)} times as much" if name == "times" else f"this is 1/{round(ratio)} of it"
        if abs(got - right) < NEARLY * abs(right):
            return "nearly right: a small term is missing, or one that does not belong there"
    return "the result is not finite: a division by 0, or exp of a large number?" if not np.isfinite(got) else None


def _of_wrong(ours: Array, right: Array, wrong: Array, scale: float) -> Iterator[str]:
    if ours.size > 1 and np.isfinite(ours).all() and np.ptp(offsets := ours - right) < 1e-5 * scale:
        yield f"every value is off by {float(offsets.flat[0]):.4g}"
    if wrong.all() and np.isfinite(ours).all() and float(np.abs(ours - right).max()) < 0.01 * scale:
        yield "all values are nearly right: digits were lost on the way, as in float16, or a small term is missing"
    if not wrong.all():
        for axis, size in enumerate(wrong.shape):
            places = np.flatnonzero(wrong.any(axis=tuple(other for other in range(wrong.ndim) if other != axis)))
            if size > 1 and len(places) < size:
                yield f"along axis {axis} {_span(places.tolist(), size)}"
        for text, mask in (("negative", right < 0), ("positive", right > 0), ("0", right == 0)):
            if mask.any() and not (wrong & ~mask).any():
                yield f"only values that should be {text} are wrong"
    for axis, size in enumerate(wrong.shape):
        for shift in (1, -1) if size > 2 else ():
            if _near(np.roll(ours, shift, axis), right, axis, scale):
                yield f"your values lie one place too {'low' if shift == 1 else 'high'} along axis {axis}"
    if np.isfinite(ours).all():
        yield from _of_axes(
            ours - right, "is off by an amount of its own: something is added, or left out, for each", scale
        )
        with np.errstate(all="ignore"):
            factors = np.where(right == 0, np.nan, ours / right)
        yield from _of_axes(factors, "has a factor of its own", 1.0)
        yield from _of_lines(ours, right, scale)
        if np.abs(ours[wrong]).min() > 1000 * scale > 0:
            yield "they are more than 1000 times too large: is a difference missing, or a division?"
    if (bad := int((~np.isfinite(ours) & np.isfinite(right)).sum())) and ours.size:
        yield f"{bad} of your values are not finite: a division by 0, or memory never written (np.empty)?"
    if not (wrong & (ours != 0)).any():
        yield f"{int(wrong.sum())} of your values are 0 and should not be: they are never written"


def _of_lines(ours: Array, right: Array, scale: float) -> Iterator[str]:
    """Whether all values, or those of each place along an axis, are a factor times the right ones plus an amount."""
    for axis in (None, *range(ours.ndim if ours.ndim > 1 else 0)):
        size = 1 if axis is None else ours.shape[axis]
        x, y = (np.moveaxis(each, axis or 0, 0).reshape(size, -1) for each in (right, ours))
        if x.shape[1] > 3:
            x, y = (each - each.mean(axis=1, keepdims=True) for each in (x, y))
            slope = (x * y).sum(axis=1, keepdims=True) / np.maximum((x * x).sum(axis=1, keepdims=True), 1e-30)
            if slope.all() and np.abs(y - slope * x).max() <= 1e-4 * scale:
                each = "" if axis is None else f", each place along axis {axis} by a factor and an amount of its own"
                yield f"they are the right values, scaled and shifted{each}: is a sum or a mean wrong?"


def _span(places: list[int], size: int) -> str:
    first, last = places[0], places[-1]
    if places == [size - 1]:
        return f"only the last place, {size - 1}, is wrong: does a loop or slice end too early?"
    if places == [0]:
        return "only the first place is wrong: does a loop or slice begin too late?"
    if places == list(range(1, size)):
        return "only the first place is right: is the rest treated as well?"
    if places == [0, size - 1]:
        return "only the first and the last place are wrong: look at the edges"
    if places == list(range(first, last + 1)):
        return (
            f"only places {first} to {last} of 0 to {size - 1} are wrong"
            if first < last
            else f"only place {first} is wrong"
        )
    if len({place % 2 for place in places}) == 1:
        return f"only {'even' if first % 2 == 0 else 'odd'} places are wrong"
    return f"only places {shortened(places, 40)} of 0 to {size - 1} are wrong"


def _near(ours: Array, right: Array, axis: int, scale: float) -> bool:
    """Whether two arrays agree but for the first and the last place along an axis."""
    inner = tuple(slice(1, -1) if at == axis else slice(None) for at in range(ours.ndim))
    return bool(scale and np.abs(ours[inner] - right[inner]).max(initial=0.0) <= 1e-4 * scale)


def _of_axes(y: Array, text: str, scale: float) -> Iterator[str]:
    """Whether y depends on the place along one axis alone."""
    for axis, size in enumerate(y.shape):
        rest = tuple(other for other in range(y.ndim) if other != axis)
        if 1 < size < y.size and not np.isnan(y).all():
            low, high = np.nanmin(y, axis=rest), np.nanmax(y, axis=rest)
            if np.nanmax(np.abs(high - low)) <= 1e-3 * scale:
                yield f"each place along axis {axis} {text}"
