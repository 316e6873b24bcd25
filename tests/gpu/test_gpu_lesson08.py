"""The kernels that benchmarks/gpu_kernels.py times, compiled by the real `cupyx.jit`, compute what CuPy does."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from unrolled import device

GROUPS = ("adding", "transposing", "summing", "pooling", "multiplying")


@pytest.fixture
def benchmark(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parents[2] / "benchmarks"))
    __import__("gpu_kernels")
    return sys.modules["gpu_kernels"]


@pytest.mark.parametrize("place", range(len(GROUPS)), ids=GROUPS)
def test_each_rung_computes_what_cupy_does(benchmark: Any, place: int) -> None:
    cp, compiler, group = device.gpu(), device.jit(), benchmark.GROUPS[place]
    assert group.make.__name__ == GROUPS[place]
    for name, work in group.make(cp, group.quick).items():
        benchmark.check(name, work, benchmark.steps_of(work, compiler, cp), cp)
