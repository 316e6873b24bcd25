"""What the simulated GPU's tests demand of it, asked of CuPy: the same programs run there, with the same errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import simgpu_cases
import test_simgpu_arrays
import test_simgpu_errors

cp: Any = pytest.importorskip("cupy", reason='CuPy is not installed: pip install -e ".[gpu]"')

OURS = {"test_results_lie_in_memory_as_numpys_do"}  # CuPy lays results out in its own way


@pytest.fixture(scope="module", autouse=True)
def cupy_instead() -> Iterator[None]:
    """The tests of arrays and errors look up their module by name: here it is CuPy."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(simgpu_cases, "MODULE", cp)
        patch.setattr(test_simgpu_arrays, "cp", cp)
        patch.setattr(test_simgpu_errors, "cp", cp)
        yield


globals().update(
    {name: test for name, test in vars(test_simgpu_arrays).items() if name.startswith("test_") and name not in OURS}
)


@pytest.mark.parametrize("mix", test_simgpu_errors.MIXES)
def test_cupy_refuses_the_same_mixes(mix: Callable[[Any], Any]) -> None:
    with pytest.raises(TypeError):
        mix(cp.asarray(np.arange(6, dtype=np.float32).reshape(2, 3)))


test_cupy_does_not_move_by_itself = test_simgpu_errors.test_the_host_cannot_take_a_device_array_by_itself
test_cupy_sets_and_gets_whole_arrays = test_simgpu_errors.test_set_and_get_move_whole_arrays_of_the_same_kind
