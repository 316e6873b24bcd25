"""Every usual mistake of every spec is recognized: an answer that makes it reads its words."""

import dataclasses
from typing import Any

import numpy as np
import pytest
from facts import CASE_LIMIT, WITH_ANSWERS, without_speed

from unrolled import checks
from unrolled.checks.mistakes import Function, Mistake

SPECS = checks.all_specs()
UNWRITTEN = 77
"""Stands where a mistake leaves whatever was in memory."""


def answer(spec: checks.Spec, mistake: Mistake) -> Function:
    """Return the wrong answer that this mistake makes of the reference."""
    wrong = mistake.of(spec.reference)

    def function(*positional: Any, **named: Any) -> Any:
        y = wrong(*positional, **named)
        return y.filled(UNWRITTEN) if isinstance(y, np.ma.MaskedArray) else y

    return function


def on_host(spec: checks.Spec) -> checks.Spec:
    """Return the spec as far as it judges values: mistakes are NumPy's, and launch no kernels."""
    cases = [dataclasses.replace(case, on_gpu=False, budget=None) for case in spec.cases]
    domain = spec.domain and dataclasses.replace(spec.domain, on_gpu=False, budget=None)
    return dataclasses.replace(without_speed(spec), cases=cases, domain=domain)


@pytest.mark.parametrize("name", [name for name, spec in SPECS.items() if spec.mistakes])
def test_each_mistake_is_recognized(name: str) -> None:
    spec = SPECS[name]
    for mistake in spec.mistakes:
        report = checks.run(
            name, on_host(spec), answer(spec, mistake), climb=False, place=WITH_ANSWERS, case_limit=CASE_LIMIT
        )
        assert report.points == 0, mistake.says
        assert mistake.says in str(report)
