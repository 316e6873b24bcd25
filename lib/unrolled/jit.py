"""The names of `cupyx.jit`, with kernels that follow their arrays: to the real GPU, or to the simulated one.

For machines with a GPU, where `device.jit()` returns this module. There a notebook's kernels run on the real GPU, and a
check hands the same kernels arrays of the simulated one, which counts what they do.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any

from unrolled.simgpu import jit as simulated
from unrolled.simgpu.array import ndarray

_cupyx = importlib.import_module("cupyx.jit")
_CuPyKernel: Any = type(_cupyx.rawkernel()(lambda: None))  # CuPy gives this type no public name

KernelFault = simulated.KernelFault


def __getattr__(name: str) -> Any:
    """Return CuPy's own for what has a meaning in a kernel only: both compilers know it."""
    return getattr(_cupyx, name)


def rawkernel(*given: Any, mode: str = "cuda", device: bool = False) -> Callable[[Callable[..., Any]], Kernel]:
    """Return a decorator that makes a kernel of a function, as `cupyx.jit.rawkernel` does."""
    if given:
        raise TypeError(simulated.BRACKETS)

    def decorate(function: Callable[..., Any]) -> Kernel:
        return functools.update_wrapper(Kernel(function, mode, device), function)  # type: ignore[return-value]

    return decorate


class Kernel(_CuPyKernel):  # type: ignore[misc]
    """CuPy's kernel, which runs on the simulated GPU if one of its arguments lies there."""

    def __init__(self, function: Callable[..., Any], mode: str, device: bool) -> None:
        simulated.keep_timed(function)
        super().__init__(function, mode, device)
        self.simulated = simulated.rawkernel(mode=mode, device=device)(function)

    def __call__(self, grid: Any, block: Any, args: Any, **options: Any) -> None:
        """Launch the kernel on the GPU of its arrays. Raises what that GPU's compiler raises."""
        launch = self.simulated if any(isinstance(x, ndarray) for x in args) else super().__call__
        launch(grid, block, args, **options)

    @property
    def report(self) -> simulated.KernelReport | None:
        """What the last launch on the simulated GPU moved and computed; None if there was none."""
        return self.simulated.report
