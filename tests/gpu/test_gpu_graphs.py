"""What the simulated GPU's tests demand of stream capture and graphs, asked of CuPy: the same programs run there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import test_simgpu_graphs

cp: Any = pytest.importorskip("cupy", reason='CuPy is not installed: pip install -e ".[gpu]"')


@pytest.fixture(scope="module", autouse=True)
def cupy_instead() -> Iterator[None]:
    """The tests look up their module by name: here it is CuPy."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(test_simgpu_graphs, "cp", cp)
        yield


globals().update({name: test for name, test in vars(test_simgpu_graphs).items() if name.startswith("test_")})


def test_cupy_lets_the_pool_grow_unless_told_otherwise() -> None:
    """Here the simulated GPU is stricter: it takes CUDA's default mode, and CuPy the relaxed one."""
    stream = cp.cuda.Stream(non_blocking=True)
    with stream:
        stream.begin_capture()
        x = cp.empty(3_456_789, "f4")
        x.fill(2)
        graph = stream.end_capture()
        graph.launch()
    stream.synchronize()
    assert float(x[-1]) == 2
