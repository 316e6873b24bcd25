"""The simulated GPU in use: which machine, which stream. Everything else in the front end is stateless."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from unrolled.simgpu.command import Machine
from unrolled.simgpu.profiles import PROFILES, GPUProfile
from unrolled.simgpu.trace import Trace

DEFAULT = "T4"  # what Colab lends

_machine: Machine | None = None
_kept: list[Machine | None] = []  # machines that `connect` put aside
streams: list[int] = [0]
"""Streams entered with `with`, the innermost last; 0 is the default stream."""


def machine() -> Machine:
    """Return the machine that new arrays go to; the first call makes one in this process, a modelled T4."""
    global _machine
    if _machine is None:
        from unrolled.simgpu.machine import LocalMachine

        _machine = LocalMachine(DEFAULT)
    return _machine


def number(stream: Any) -> int:
    """Return the number of a stream, that of the one in use for None."""
    return streams[-1] if stream is None else int(stream.number)


def use(name: str) -> GPUProfile:
    """Model another GPU ("T4", "A100", "H200"), fresh, and return its profile: no arrays, clock at 0.

    Arrays made before cannot be used on it. Raises ValueError for a name that has no profile, RuntimeError while
    connected to a machine elsewhere.
    """
    if name not in PROFILES:
        raise ValueError(f"there is no profile {name!r}; expected one of {', '.join(PROFILES)}")
    if _kept:
        raise RuntimeError("the simulated GPU lies elsewhere (connect); its profile cannot be chosen here")
    from unrolled.simgpu.machine import LocalMachine

    _replace(LocalMachine(name))
    return machine().profile


def profile() -> GPUProfile:
    """Return the figures of the modelled GPU."""
    return machine().profile


def reset() -> None:
    """Start the same GPU afresh, as `use` does: no arrays, clock at 0. Arrays made before cannot be used on it."""
    use(profile().name)


def connect(link: Machine) -> None:
    """Send all work to a machine elsewhere, until `disconnect`."""
    _kept.append(_machine)
    _replace(link)


def disconnect() -> None:
    """Go back to the machine that was in use before `connect`. Raises RuntimeError without one."""
    if not _kept:
        raise RuntimeError("disconnect: not connected to a machine elsewhere")
    _replace(_kept.pop())


def clock() -> float:
    """Return the seconds on the modelled host clock: the host's share of the work so far, and its waits for the GPU."""
    return machine().clock()


@contextmanager
def trace() -> Iterator[Trace]:
    """Trace what the GPU does in the block: `with simgpu.trace() as t:`; t is complete after the block.

    The trace begins when the device has done all work so far; `t.seconds` counts until the device has done the block's.
    """
    traced, found = machine(), Trace()
    number = traced.start_trace(idle=True)
    try:
        yield found
    finally:
        vars(found).update(vars(traced.stop_trace(number)))


def _replace(new: Machine | None) -> None:
    global _machine
    _machine = new
    streams[:] = [0]
