"""Kernels in the learner's own check: faults, traffic and launches, and what is said of each."""

from __future__ import annotations

import pytest

import kernel_specs
from unrolled.checks import Spec, run

CASES = [
    *((kernel_specs.ADD, name, *case) for name, case in kernel_specs.WRONG.items()),
    *((kernel_specs.TRANSPOSE, name, *case) for name, case in kernel_specs.SCATTERED.items()),
]


@pytest.mark.parametrize(
    ("spec", "source"), [(kernel_specs.ADD, kernel_specs.GUARDED), (kernel_specs.TRANSPOSE, kernel_specs.TILED)]
)
def test_right_kernels_pass(spec: Spec, source: str) -> None:
    found = run("kernel", spec, kernel_specs.answer(source))
    assert found.passed, str(found)


@pytest.mark.parametrize(("spec", "name", "source", "says"), CASES, ids=[name for _, name, *_ in CASES])
def test_what_a_kernel_does_wrong_is_said(spec: Spec, name: str, source: str, says: tuple[str, ...]) -> None:
    found = run("kernel", spec, kernel_specs.answer(source))
    assert not found.points
    assert all(words in str(found) for words in says), str(found)
