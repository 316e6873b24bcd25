"""Usual mistakes: what a learner may have done, told by the result that it leads to.

Most are the exercise's reference with another argument or another result:

    given("the stride is missing", stride=1)
    given("the kernel is transposed", weight=lambda weight: weight.swapaxes(2, 3))
    result("each of your rows is a window: transpose", lambda y: y.T)
    result("the bias is subtracted: add it", lambda y, bias: y - 2 * bias)

So they hold for a variant of the exercise as well, with the variant's reference. What a function here is called with
follows from the names of its parameters, which are those of the reference.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from types import EllipsisType
from typing import Any

import numpy as np

from unrolled.device import Array

Function = Callable[..., Any]


@dataclass(frozen=True)
class Mistake:
    """A usual mistake: if the learner's result is the same as the mistake's, the check says `says`.

    That is the result of `function`, else of the exercise's reference, changed by `result` if it is given. `given` are
    arguments that take the place of the case's, by name: values, or functions of the case's own.
    """

    says: str
    function: Function | None = None
    given: Mapping[str, Any] = field(default_factory=dict)
    result: Function | None = None

    def of(self, reference: Function) -> Function:
        """Return the wrong function, where `reference` is the right one."""
        if self.function is not None and not self.given and self.result is None:
            return self.function
        made = self.function or reference

        def wrong(*positional: Any, **named: Any) -> Any:
            bound = _signature(made).bind(*positional, **named)
            bound.apply_defaults()
            known = dict(bound.arguments)
            for name, change in self.given.items():
                changes = callable(change) and not isinstance(change, type)
                bound.arguments[name] = called_by_name(change, known) if changes else change
            y = made(*bound.args, **bound.kwargs)
            return y if self.result is None else called_by_name(self.result, known, y)

        return wrong


def given(says: str, /, function: Function | None = None, **arguments: Any) -> Mistake:
    """Return the mistake of calling the reference, or `function`, with these arguments in place of the case's."""
    return Mistake(says, function, given=arguments)


def result(says: str, change: Function, function: Function | None = None) -> Mistake:
    """Return the mistake of giving `change(result, …)` for the result of the reference, or of `function`."""
    return Mistake(says, function, result=change)


def alone(y: Array, *place: int | slice | EllipsisType) -> Array:
    """Return y with zeros everywhere but at this place."""
    found = np.zeros_like(y)
    found[place] = y[place]
    return found


def only(y: Array, *place: int | slice | EllipsisType) -> Array:
    """Return y with all masked but this place: what stands elsewhere may be anything, as what np.empty leaves."""
    mask = np.ones(y.shape, bool)
    mask[place] = False
    return np.ma.MaskedArray(y, mask)


def called_by_name(change: Function, known: Mapping[str, Any], *first: Any) -> Any:
    """Return what a function makes of the values that its parameters name, `**` all, after those that come first."""
    parameters = list(_signature(change).parameters.values())[len(first) :]
    if any(each.kind is each.VAR_KEYWORD for each in parameters):
        return change(*first, **known)
    wanted = [each for each in parameters if each.name in known or each.default is each.empty]
    return change(*first, **{each.name: known[each.name] for each in wanted})


@lru_cache(maxsize=1000)
def _signature(function: Function) -> inspect.Signature:
    return inspect.signature(function)
