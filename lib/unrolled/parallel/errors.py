"""What can go wrong between ranks, by name. Each error says which ranks, in which call, in which line of a program."""

from __future__ import annotations


class ParallelError(RuntimeError):
    """What goes wrong between ranks."""


class MismatchError(ParallelError):
    """Two ranks disagree: one calls something else than the other, or for an array of another shape or dtype."""


class DeadlockError(ParallelError):
    """Every rank that has not returned waits for another one."""


class RankError(ParallelError):
    """A rank died, raised an error, or did not answer in time."""


class NoEngineError(ParallelError):
    """The engine that was asked for is not there: what is missing, and what to install."""
