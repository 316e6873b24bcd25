"""Lesson 13 on a real GPU: its answers earn every point there, the speed of the replayed epoch included."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from unrolled import checks

LESSON = "13_capstone"


@pytest.fixture(scope="module")
def lesson() -> Any:
    """Lesson 13 with its solutions, run through on the real GPU."""
    file = Path(__file__).resolve().parents[2] / "lessons" / f"{LESSON}.py"
    spec = importlib.util.spec_from_file_location("lesson13", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", checks.lessons()[LESSON])
def test_the_answers_of_the_lesson_earn_every_point(lesson: Any, name: str) -> None:
    report = checks.run(name, checks.lessons()[LESSON][name], getattr(lesson, name))
    print(report)
    assert report.points == report.max_points, str(report)
