"""The walk's beginning: an instructor's home with a fork of this course in it."""

from __future__ import annotations

from pathlib import Path

from classroom30 import MEANWHILE
from page import Walk

from unrolled_grader.classroom import trees

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "teaching.md"
FONTS = """\
cache=$(python -c 'from unrolled.data import fetching; print(fetching.cache())')
for folder in "$MPLCONFIGDIR" "$cache/matplotlib"; do
    MPLCONFIGDIR=$folder python -c 'import matplotlib.font_manager'
done
"""
"""Makes Matplotlib's lists of fonts, ours and the judge's. On a slow machine it says so, in midst of other output."""


def fork(home: Path) -> Walk:
    """Someone in a home with nothing but a clone of the fork, its environment activated."""
    for name in trees.WHOLE:
        if name not in ("tests", "benchmarks"):
            trees.copy(ROOT / name, home / "unrolled" / name)
    walk = Walk(home, MEANWHILE, home / "unrolled")
    walk.command(FONTS)
    return walk
