"""What a notebook may have set for all of its process, set aside while a function is judged."""

from __future__ import annotations

import io
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from typing import TextIO

import numpy as np

LINES, LETTERS = 20, 4000  # as much as is shown of what a function prints while it is checked


@contextmanager
def set_aside() -> Iterator[None]:
    """Run the block with NumPy's errors and Python's warnings silenced, whatever the notebook has set.

    Both are the process's own, so check and judge would else differ; usual mistakes divide by zero. Takes microseconds.
    """
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


class _First(io.TextIOBase):
    """Passes on the first lines, and counts the others."""

    def __init__(self, stream: TextIO) -> None:
        self.stream, self.lines, self.letters, self.more = stream, LINES, LETTERS, 0

    def write(self, text: str) -> int:
        for line in text.splitlines(keepends=True):
            if self.lines > 0 and self.letters > 0:
                self.stream.write(line[: self.letters])
                self.lines -= line.endswith("\n")
                self.letters -= len(line)
            else:
                self.more += line.endswith("\n")
        return len(text)

    def flush(self) -> None:
        self.stream.flush()


@contextmanager
def first_lines() -> Iterator[None]:
    """Show the first 20 lines that are printed in the block, then how many more there were."""
    first = _First(sys.stdout)
    try:
        with redirect_stdout(first):
            yield
    finally:
        if first.more:
            print(f"… and {first.more:,} more lines that your function printed")


@contextmanager
def silence() -> Iterator[None]:
    """Show nothing of what is printed in the block."""
    with open(os.devnull, "w", encoding="utf-8", errors="replace") as nowhere, redirect_stdout(nowhere):
        yield
