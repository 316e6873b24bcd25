"""What `add_kernel` and `shift_kernel` compute, how they are launched, and a block that begins with another value."""

from __future__ import annotations

from typing import Any

import numpy as np

from unrolled.checks.domain import edge_size
from unrolled.checks.spec import Inputs, normals
from unrolled.device import Array, array_module

THREADS = 256


def added(x: Array, y: Array, out: Array, n: int) -> Array:
    """Return x + y; the parameters are the kernel's."""
    return x + y


def launched(kernel: Any, inputs: Inputs) -> Array:
    """Launch the kernel with as many blocks as the values need, and return what it wrote."""
    arrays = [inputs[name] for name in ("x", "y") if name in inputs]
    x, threads = arrays[0], inputs.get("threads", THREADS)
    xp = array_module(x)
    if xp is np or kernel in (added, shifted):
        return kernel(*arrays, x, x.size)
    out = xp.empty_like(x)
    kernel(-(-x.size // threads), threads, (*arrays, out, np.int32(x.size)))
    return out


def any_vectors(rng: np.random.Generator) -> Inputs:
    """Draw two vectors of a length, and how many threads a block has."""
    n = edge_size(rng, 700)
    return {**normals(rng, x=(n,), y=(n,)), "threads": int(rng.choice([32, 64, 128, 512]))}


def shifted(x: Array, out: Array, n: int) -> Array:
    """Return x (n,) with each block of THREADS values one place further on, and 0 where it begins."""
    y = array_module(x).zeros_like(x)
    y[1:] = x[:-1]
    y[::THREADS] = 0
    return y


def first_of_blocks(x: Array, values: Array) -> Array:
    """Shift the blocks of x, and let those of the values that are left over begin them."""
    y = np.roll(x, 1)
    y[::THREADS] = values[: len(y[::THREADS])]
    return y
