"""The walk's beginning: an instructor's home with a fork of this course in it."""

from __future__ import annotations

from pathlib import Path

from classroom30 import MEANWHILE
from page import Walk

from unrolled_grader.classroom import trees

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "teaching.md"


def fork(home: Path) -> Walk:
    """Someone in a home with nothing but a clone of the fork, its environment activated."""
    for name in trees.WHOLE:
        if name not in ("tests", "benchmarks"):
            trees.copy(ROOT / name, home / "unrolled" / name)
    return Walk(home, MEANWHILE, home / "unrolled")
