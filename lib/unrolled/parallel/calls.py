"""What one rank calls, and where in the program: for errors, and for comparing ranks in processes."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import numpy as np

PACKAGE = str(Path(__file__).parent) + os.sep
CARRIED = "<dynamic-code>"  # the file of a function that cloudpickle has brought from another process


class Call(NamedTuple):
    """An operation as one rank calls it."""

    kind: str
    shape: tuple[int, ...]
    dtype: Any
    place: tuple[str, int]
    """File and line of the program, or function and line."""

    def __str__(self) -> str:
        array = "" if self.kind == "barrier" else f" of {self.dtype} {self.shape}"
        return f"{self.kind}{array} in {Path(self.place[0]).name}:{self.place[1]}"

    def note(self) -> list[Any]:
        """Return the call as values that JSON can hold: kind, shape, name of the dtype, place."""
        return [self.kind, self.shape, str(self.dtype), self.place]


def from_note(note: list[Any]) -> Call:
    """Return the call that another rank wrote as `Call.note`."""
    return Call(note[0], tuple(note[1]), np.dtype(note[2]), tuple(note[3]))


def caller() -> FrameType:
    """Return the frame of the program that called the library: the nearest one outside of this package."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame = frame.f_back
    return frame


def place() -> tuple[str, int]:
    """Return file and line of the program that called the library; the function's name where the file's is lost."""
    frame = caller()
    code = frame.f_code
    return code.co_name if code.co_filename == CARRIED else code.co_filename, frame.f_lineno
