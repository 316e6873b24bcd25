"""Lesson 08 on a real GPU: its kernels, rung by rung, compute what CuPy does; its answers earn every point there."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

from unrolled import checks, device

GROUPS = ("adding", "transposing", "summing", "pooling", "multiplying")


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parents[2] / "benchmarks"))
    __import__("gpu_kernels")
    return sys.modules["gpu_kernels"]


@pytest.mark.parametrize("place", range(len(GROUPS)), ids=GROUPS)
def test_each_rung_computes_what_cupy_does(module: Any, place: int) -> None:
    cp, compiler, group = device.gpu(), device.jit(), module.GROUPS[place]
    assert group.make.__name__ == GROUPS[place]
    for name, work in group.make(cp, group.quick).items():
        module.check(name, work, module.steps_of(work, compiler, cp), cp)


@pytest.fixture(scope="module")
def lesson() -> Any:
    """Lesson 08 with its solutions, run through on the real GPU."""
    file = Path(__file__).resolve().parents[2] / "lessons" / "08_kernels.py"
    spec = importlib.util.spec_from_file_location("lesson08", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


EXERCISES = ("add_kernel", "transpose_tiled", "row_sum", "fused_bias_relu_pool", "matmul_tiled")


@pytest.mark.parametrize("name", EXERCISES)
def test_the_answers_of_the_lesson_earn_every_point(lesson: Any, name: str) -> None:
    report = checks.run(name, checks.lessons()["08_kernels"][name], getattr(lesson, name))
    assert report.points == report.max_points, str(report)
