"""Kernels on a machine with a GPU: the arrays decide whether CuPy's compiler gets them, or the simulated one's."""

import importlib
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from unrolled import simgpu
from unrolled.simgpu import jit as simulated


class CuPyKernel:
    """What the fake `cupyx.jit` makes of a function: it notes its launches."""

    def __init__(self, function: Any, mode: str, device: bool) -> None:
        self.launches: list[Any] = []

    def __call__(self, grid: Any, block: Any, args: Any, **options: Any) -> None:
        self.launches.append((grid, block, args, options))

    def __getitem__(self, grid_and_block: Any) -> Any:
        return lambda *args, **options: self(*grid_and_block, args, **options)


@pytest.fixture
def jit(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """`unrolled.jit` above a fake `cupyx.jit`, whose names are objects of its own, as CuPy's are."""
    fake: Any = ModuleType("cupyx.jit")
    vars(fake).update({name: object() for name in simulated.__all__ if name.islower()})
    fake.rawkernel = lambda *, mode="cuda", device=False: lambda function: CuPyKernel(function, mode, device)
    monkeypatch.setitem(sys.modules, "cupyx", ModuleType("cupyx"))
    monkeypatch.setitem(sys.modules, "cupyx.jit", fake)
    monkeypatch.setitem(sys.modules, "cupy", ModuleType("cupy"))
    monkeypatch.delitem(sys.modules, "unrolled.jit", raising=False)
    yield importlib.import_module("unrolled.jit")
    sys.modules.pop("unrolled.jit", None)


def test_arrays_of_the_simulated_gpu_go_to_its_compiler(jit: Any) -> None:
    cp: Any = sys.modules["cupy"]
    cp.float32 = np.float32
    grid = jit.grid  # CuPy's, under a name of its own

    @jit.rawkernel(device=True)
    def twice(value):  # type: ignore[no-untyped-def]
        return 2 * value

    @jit.rawkernel()
    def kernel(x, y, n):  # type: ignore[no-untyped-def]
        tile = jit.shared_memory(cp.float32, 32)
        t, i = jit.threadIdx.x, grid(1)
        if i < n:
            tile[t] = x[i]
            y[i] = twice(tile[t])

    x, y = simgpu.arange(50, dtype=np.float32), simgpu.zeros(50, np.float32)
    kernel[2, 32](x, y, 50)
    np.testing.assert_array_equal(simgpu.asnumpy(y), 2 * np.arange(50))
    assert kernel.report.total.read_sectors == 7
    assert kernel.launches == []
    assert kernel.__name__ == "kernel"


def test_other_arrays_go_to_cupy(jit: Any) -> None:
    @jit.rawkernel()
    def kernel(x):  # type: ignore[no-untyped-def]
        x[0] = 1

    kernel[2, 32]("an array of CuPy's", stream="a stream")
    assert kernel.launches == [(2, 32, ("an array of CuPy's",), {"stream": "a stream"})]
    assert kernel.report is None


def test_what_the_simulated_one_refuses_is_refused_there(jit: Any) -> None:
    @jit.rawkernel()
    def beyond(x):  # type: ignore[no-untyped-def]
        x[jit.threadIdx.x + 8] = 1

    with pytest.raises(jit.KernelFault, match="out of bounds"):
        beyond[1, 32](simgpu.zeros(32, np.float32))
