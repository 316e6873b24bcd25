"""All forms of the LSTM on a real GPU against PyTorch on the CPU."""

from __future__ import annotations

from typing import Any

import pytest
from lstm_cases import case

from unrolled.ops.lstm.sequence import FORMS

cp: Any = pytest.importorskip("cupy", reason='CuPy is not installed: pip install -e ".[gpu]"')


@pytest.mark.parametrize("form", FORMS)
def test_float32(form: str) -> None:
    case(7, 5, 9, 128, 3).on(lambda x: cp.asarray(x, dtype="float32")).check(form, 5e-4)


@pytest.mark.parametrize("form", FORMS[:-1])
def test_float64(form: str) -> None:
    case(7, 5, 9, 11, 3).on(cp.asarray).check(form, 1e-9)
