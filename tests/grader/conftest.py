from collections.abc import Iterator
from pathlib import Path

import pytest
import small_course

from unrolled import checks


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
