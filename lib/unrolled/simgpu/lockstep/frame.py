"""The variables of one function while it runs, and which lanes have left it."""

from __future__ import annotations

from typing import Any

import numpy as np

from unrolled.simgpu.lockstep import faults, traffic
from unrolled.simgpu.lockstep.arrays import Region
from unrolled.simgpu.lockstep.lanes import Mask, Value
from unrolled.simgpu.lockstep.state import Run


class Loop:
    """The lanes that a loop's `break` and `continue` have sent on."""

    def __init__(self, none: Mask) -> None:
        self.broken = self.continued = none


class Frame:
    """Variables by name, for the lanes that entered the function.

    A variable that only some lanes have set is in `partial`, with those lanes.
    """

    def __init__(self, run: Run, values: dict[str, Any], entry: Mask) -> None:
        self.run, self.values, self.entry = run, values, entry
        self.partial: dict[str, Mask] = {}
        self.returned = entry.batch.none
        self.result: Any = None
        self.held: Any = None
        """What `x += 1` found in x."""
        self.loops: list[Loop] = []

    def read(self, name: str, mask: Mask, line: int) -> Any:
        """Return a variable. Raises KernelFault if an active lane has not set it."""
        known = self.partial.get(name)
        if known is not None and not mask.within(known):
            lane = mask.first(~known.lanes)
            raise self.run.fault(faults.UNSET, line, f"reads {name!r}, which it has not set", lane)
        if name not in self.values:
            raise self.run.fault(faults.UNSET, line, f"reads {name!r}, which it has not set", mask.first(True))
        return self.values[name]

    def assign(self, name: str, value: Any, mask: Mask) -> None:
        """Set a variable in the active lanes."""
        if mask.count + self.returned.count == self.entry.count:  # nobody is left who could see another value
            self.values[name] = value
            self.partial.pop(name, None)
            return
        if name not in self.values:
            self.values[name], self.partial[name] = value, mask
            return
        self.values[name] = merged(mask, value, self.values[name])
        known = self.partial.get(name)
        if known is not None and not mask.within(known):
            self.partial[name] = Mask(mask.batch, known.lanes | mask.lanes)

    def give(self, value: Any, mask: Mask) -> None:
        """Leave the function in the active lanes, with its result."""
        if value is not None:
            self.result = value if self.result is None else merged(mask, value, self.result)
        self.returned = self.returned.plus(mask)

    def branch(self, mask: Mask, condition: Value, line: int) -> tuple[Mask, Mask]:
        """Return the lanes for which a condition holds, and the others. Counts it."""
        yes = mask.where(condition)
        counts = self.run.counts.line(line)
        counts.branches += mask.warps
        if np.ndim(condition) and condition.shape[1] > 1:
            counts.divergent += traffic.split_warps(mask, yes)
        return yes, mask.less(yes)


def merged(mask: Mask, new: Any, old: Any) -> Any:
    """Return the new value in the active lanes, the old one in all others."""
    if isinstance(new, tuple):
        return tuple(merged(mask, x, y) for x, y in zip(new, old, strict=True))
    if isinstance(new, Region):
        return Region(new.space, merged(mask, new.place, old.place), new.shape, new.steps, new.indices)
    if new is old:
        return new
    return np.where(mask.lanes, new, old)
