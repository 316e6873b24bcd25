"""Two ceilings of a machine, measured: how fast memory can be copied, and how fast a matrix product can run."""

from __future__ import annotations

import operator
import time
from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import DTypeLike

from unrolled import device
from unrolled.timing.blocks import block_timer
from unrolled.timing.measuring import is_graded
from unrolled.timing.threads import blas_threads

COPY_BYTES = 128 * 2**20  # a buffer; two of them are several times any cache of a CPU
GPU_COPY_BYTES = 2**30
MATMUL_SIZE, SIMULATED_MATMUL_SIZE, GPU_MATMUL_SIZE = 768, 1024, 8192
BUDGET = 0.4  # seconds
CALLS = 3  # a block on a device, so that its synchronization hardly counts


def copy_bandwidth(threads: int | None = 1, module: device.Module = np) -> float:
    """Return the bytes per second that copying a large array moves, read and write both counted, as STREAM counts them.

    The best of several copies: a ceiling is what the machine can do. (J. McCalpin, STREAM, 1995.) `module`: on whose
    device; that of the simulated GPU is modelled.
    """
    nbytes = COPY_BYTES if module is np or device.is_simulated(module) else GPU_COPY_BYTES
    source, target = module.full(nbytes // 8, 1.0), module.empty(nbytes // 8)
    copy = partial(np.copyto, target, source) if module is np else partial(operator.setitem, target, ..., source)
    with blas_threads(threads):
        return 2 * nbytes / _fastest(copy, module)


def matmul_peak(
    dtype: DTypeLike = np.float32, threads: int | None = 1, size: int | None = None, module: device.Module = np
) -> float:
    """Return the floating-point operations per second of a (size, size) matrix product: 2 size^3 over the best time.

    `size` is 768 on a CPU, 8192 on a GPU and 1024 on the simulated one, unless given; `module` as in `copy_bandwidth`.
    """
    on_device = SIMULATED_MATMUL_SIZE if device.is_simulated(module) else GPU_MATMUL_SIZE
    size = size or (MATMUL_SIZE if module is np else on_device)
    rng = np.random.default_rng(0)
    a, b = (device.to_device(rng.random((size, size), dtype=np.float32).astype(dtype), module) for _ in range(2))
    out = module.empty((size, size), dtype=dtype)
    with blas_threads(threads):
        return 2 * size**3 / _fastest(lambda: module.matmul(a, b, out=out), module)


def _fastest(function: Callable[[], object], module: device.Module) -> float:
    """Seconds per call of the fastest block in about 0.4 s, after a call that does not count.

    Of one block where a notebook is graded, and on a model.
    """
    block, calls = block_timer(function, [{}], module), 1 if module is np else CALLS
    block(1)
    end = time.perf_counter() + (0.0 if is_graded() or device.is_simulated(module) else BUDGET)
    walls = [block(calls).wall]
    while time.perf_counter() <= end:
        walls.append(block(calls).wall)
    return min(walls) / calls
