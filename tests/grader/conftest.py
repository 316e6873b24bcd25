from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
import small_course

from unrolled import checks


@pytest.fixture(scope="session", autouse=True)
def _drawn_once() -> Iterator[None]:
    """Draw the same scores once: each run of grading writes a report, and most of that time is its picture's."""
    from unrolled_grader.results import figures

    drawn = cache(figures.histogram)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(figures, "histogram", lambda lesson, *shares: drawn(lesson, *map(tuple, shares)))
        yield


@pytest.fixture(scope="module")
def _small_specs() -> Iterator[None]:
    """Let this process know the small course's specs; its notebook brings them along by itself."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checks, "lessons", lambda: {small_course.LESSON: small_course.SPECS})
        yield


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory, _small_specs: None) -> Path:
    """A checkout of the small course, built."""
    return small_course.make(tmp_path_factory.mktemp("course") / "checkout")
