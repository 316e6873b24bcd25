"""What one rank calls, and where in the program: for errors, and for comparing ranks in processes."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

HERE = str(Path(__file__).parent)


class Call(NamedTuple):
    """An operation as one rank calls it."""

    kind: str
    shape: tuple[int, ...]
    dtype: Any
    place: tuple[str, int]
    """File and line of the program."""

    def __str__(self) -> str:
        array = "" if self.kind == "barrier" else f" of {self.dtype} {self.shape}"
        return f"{self.kind}{array} in {Path(self.place[0]).name}:{self.place[1]}"

    def note(self) -> list[Any]:
        """Return what JSON can hold; see `from_note`."""
        return [self.kind, self.shape, str(self.dtype), self.place]


def from_note(note: list[Any]) -> Call:
    """Return what another rank wrote with `Call.note`."""
    return Call(note[0], tuple(note[1]), np.dtype(note[2]), tuple(note[3]))


def place() -> tuple[str, int]:
    """Return file and line of the program that called the library: the nearest ones outside of this package."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(HERE):
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno
