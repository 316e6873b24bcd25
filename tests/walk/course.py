"""Where the walks begin: an instructor's home with a fork of this course in it."""

from collections.abc import Callable
from pathlib import Path

import new_lesson
from classroom30 import MEANWHILE
from page import Walk

from unrolled_grader.classroom import trees

ROOT = Path(__file__).resolve().parents[2]
TEACHING, AUTHORING = ROOT / "docs" / "teaching.md", ROOT / "docs" / "authoring.md"
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


def fork_of_one_lesson(home: Path) -> Walk:
    """The same with lesson 00 alone, and what proves lessons."""
    for name in (*trees.WHOLE, "tests/lessons"):
        if name not in ("tests", "benchmarks", "lessons"):
            trees.copy(ROOT / name, home / "unrolled" / name)
    trees.copy(ROOT / "lessons" / "00_start_here.py", home / "unrolled" / "lessons" / "00_start_here.py")
    return Walk(home, {"colleague": colleague}, home / "unrolled")


def colleague(walk: Walk) -> None:
    """Somebody sends the files of a lesson."""
    for name, text in new_lesson.FILES.items():
        file = walk.home / "Downloads" / "doubling" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


FORKS: dict[Path, Callable[[Path], Walk]] = {TEACHING: fork, AUTHORING: fork_of_one_lesson}
"""What the walk of a page begins with."""
