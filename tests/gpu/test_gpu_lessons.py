"""Lessons 08, 09, 13 and 14 on a real GPU: their answers earn every point there; lesson 08's kernels, rung by rung."""

from __future__ import annotations

import importlib.util
import json
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from unrolled import checks, device

ROOT = Path(__file__).resolve().parents[2]
LESSONS = "08_kernels", "09_lstm", "13_capstone", "14_attention"
GROUPS = ("adding", "transposing", "summing", "pooling", "multiplying")


@cache
def lesson_of(name: str) -> Any:
    """The lesson with its solutions, run through on the real GPU, from a file: CuPy's compiler reads the source."""
    cells = json.loads((ROOT / "solutions" / name / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]
    file = Path(tempfile.mkdtemp(), f"{name}.py")
    file.write_text("\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"))
    spec = importlib.util.spec_from_file_location(f"lesson_{name}", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("lesson", "name"), [(lesson, name) for lesson in LESSONS for name in checks.lessons()[lesson]]
)
def test_the_answers_of_the_lesson_earn_every_point(lesson: str, name: str) -> None:
    report = checks.run(name, checks.lessons()[lesson][name], getattr(lesson_of(lesson), name))
    print(report)
    assert report.points == report.max_points, str(report)


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    __import__("gpu_kernels")
    return sys.modules["gpu_kernels"]


@pytest.mark.parametrize("place", range(len(GROUPS)), ids=GROUPS)
def test_each_rung_computes_what_cupy_does(module: Any, place: int) -> None:
    cp, compiler, group = device.gpu(), device.jit(), module.GROUPS[place]
    assert group.make.__name__ == GROUPS[place]
    for name, work in group.make(cp, group.quick).items():
        module.check(name, work, module.steps_of(work, compiler, cp), cp)


@pytest.fixture
def lesson() -> Any:
    return lesson_of("08_kernels")


def test_a_race_is_found_in_a_kernel_of_cupys(lesson: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    cp, jit = lesson.cp, lesson.jit

    @jit.rawkernel()
    def kernel(x, y, columns):  # type: ignore[no-untyped-def]
        partial = jit.shared_memory(cp.float32, 256)
        t, row = cp.int32(jit.threadIdx.x), cp.int32(jit.blockIdx.x)
        partial[t] = x[row, t % columns]
        total = cp.float32(0)
        for other in range(256):
            total += partial[other]
        y[row] = total

    monkeypatch.setattr(lesson, "row_sum_kernel", kernel)
    report = checks.run("row_sum", checks.lessons()["08_kernels"]["row_sum"], lesson.row_sum)
    assert not report.points
    assert "race: thread" in str(report)
    assert "total += partial[other]" in str(report)


def test_scattered_writes_are_counted_in_a_kernel_of_cupys(lesson: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    cp, jit = lesson.cp, lesson.jit

    @jit.rawkernel()
    def kernel(x, y, rows, columns):  # type: ignore[no-untyped-def]
        i, j = cp.int32(jit.threadIdx.x), cp.int32(jit.threadIdx.y)
        top, left = cp.int32(jit.blockIdx.y) * 32, cp.int32(jit.blockIdx.x) * 32
        for k in range(0, 32, 8):
            if top + j + k < rows and left + i < columns:
                y[left + i, top + j + k] = x[top + j + k, left + i]

    monkeypatch.setattr(lesson, "transpose_kernel", kernel)
    report = checks.run("transpose_tiled", checks.lessons()["08_kernels"]["transpose_tiled"], lesson.transpose_tiled)
    assert not report.points
    assert "the kernels write" in str(report)
    assert "y[left + i, top + j + k] = x" in str(report)
