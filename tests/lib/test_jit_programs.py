"""Programs that the simulated compiler accepts or refuses, as cupyx.jit does: tests/gpu runs the same on a GPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from jit_programs import ACCEPTED, REFUSED, Program

from unrolled import simgpu as cp
from unrolled.simgpu import jit


@pytest.mark.parametrize(("program", "expected"), ACCEPTED, ids=[program.name for program, _ in ACCEPTED])
def test_accepted(program: Program, expected: Any) -> None:
    found = program.run(jit, cp)
    given = np.asarray(expected).astype(found.dtype)
    np.testing.assert_allclose(found[: given.size], given, rtol=1e-6)


@pytest.mark.parametrize("program", REFUSED, ids=[program.name for program in REFUSED])
def test_refused(program: Program) -> None:
    with pytest.raises(program.refused) as caught:
        program.run(jit, cp)
    assert program.words in str(caught.value)
    assert "line " in str(caught.value)
    assert "\n> " in str(caught.value)  # the line is marked
