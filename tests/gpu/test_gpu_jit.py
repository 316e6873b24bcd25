"""The table of programs that the simulated compiler is held to, on the real `cupyx.jit`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from jit_programs import ACCEPTED, REFUSED, Program

from unrolled import device


@pytest.mark.parametrize(("program", "expected"), ACCEPTED, ids=[program.name for program, _ in ACCEPTED])
def test_cupy_accepts(program: Program, expected: Any) -> None:
    found = program.run(device.jit(), device.gpu())
    given = np.asarray(expected).astype(found.dtype)
    np.testing.assert_allclose(found[: given.size], given, rtol=1e-5)


@pytest.mark.parametrize("program", REFUSED, ids=[program.name for program in REFUSED])
def test_cupy_refuses_with_the_same_kind_of_error(program: Program) -> None:
    from cupy.cuda import compiler

    kinds = tuple(getattr(compiler, kind.__name__, kind) for kind in program.refused)  # CUDA's compiler has its own
    with pytest.raises(kinds):
        program.run(device.jit(), device.gpu())
