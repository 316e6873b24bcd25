"""A machine whose clock only moves when a block runs, so that no test depends on real speed."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from unrolled.timing import BlockTime
from unrolled.timing.blocks import BlockTimer

Noise = Callable[["Machine"], float]


@dataclass
class Machine:
    """`noise` multiplies the wall time of each block; CPU time only wavers by 1 %."""

    noise: Noise = lambda machine: 1.0
    seed: int = 0
    now: float = 0.0
    log: list[tuple[str, int, float]] = field(default_factory=list)  # name, calls, wall seconds

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)

    def clock(self) -> float:
        return self.now

    def timer(self, name: str, seconds: float, busy: float = 1.0) -> BlockTimer:
        """A block timer of a function of `seconds` a call, of which the share `busy` is CPU time."""

        def block(calls: int) -> BlockTime:
            work = calls * seconds
            wall = work * self.noise(self)
            self.now += wall
            self.log.append((name, calls, wall))
            return BlockTime(wall, busy * work * self.rng.lognormvariate(0, 0.01))

        return block

    def calls(self, name: str) -> list[int]:
        return [calls for who, calls, _ in self.log if who == name]


def quiet(machine: Machine) -> float:
    """An idle machine: 3 % of noise."""
    return machine.rng.lognormvariate(0, 0.03)


def shaky(machine: Machine) -> float:
    """15 % of noise on every block."""
    return machine.rng.lognormvariate(0, 0.15)


def spikes(machine: Machine) -> float:
    """Now and then another process takes the core: one block in four lasts 1.5 to 4 times as long."""
    spike = machine.rng.uniform(1.5, 4) if machine.rng.random() < 0.25 else 1.0
    return spike * machine.rng.lognormvariate(0, 0.05)


def drift(machine: Machine) -> float:
    """The clock frequency halves and doubles over about a second."""
    phase = machine.now % 1.0
    return (1 + 2 * min(phase, 1 - phase)) * machine.rng.lognormvariate(0, 0.05)


def crowded(machine: Machine) -> float:
    """Four busy processes on two cores: every block shares its core, more or less."""
    return machine.rng.choice((1.0, 2.0, 2.0, 3.0)) * machine.rng.lognormvariate(0, 0.1)
