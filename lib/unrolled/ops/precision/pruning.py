"""Magnitude pruning: the smallest weights become 0 and stay 0 (Han and others, 2015, arXiv:1506.02626)."""

from __future__ import annotations

import importlib
from math import floor
from typing import Any

import numpy as np

from unrolled.device import Array, array_module
from unrolled.ops.arguments import check_arrays
from unrolled.ops.precision.hosted import check_host


def magnitude_mask(weight: Array, fraction: float) -> Array:
    """Return 0 at the floor(fraction * size) smallest magnitudes of weight and 1 elsewhere, in its shape and dtype.

    Of equal magnitudes the first go. Raises ValueError unless 0 <= fraction < 1.
    """
    check_host("magnitude_mask", weight=weight)
    if not 0 <= fraction < 1:
        raise ValueError(f"fraction is {fraction}; expected at least 0 and below 1")
    mask = np.ones(weight.size, weight.dtype)
    mask[np.argsort(np.abs(weight), axis=None, kind="stable")[: floor(fraction * weight.size)]] = 0
    return mask.reshape(weight.shape)


def sparse(weight: Array) -> Any:
    """Return weight (M, K) as a CSR matrix, which holds what is not 0: SciPy's on the host, CuPy's on a GPU.

    Raises TypeError on the simulated GPU, which has no sparse matrices, and ImportError where SciPy is absent.
    """
    module = check_arrays(weight=weight)
    name = {"numpy": "scipy.sparse", "cupy": "cupyx.scipy.sparse"}.get(getattr(module, "__name__", ""))
    if name is None:
        check_host("sparse", weight=weight)
    if weight.ndim != 2:
        raise ValueError(f"weight has shape {weight.shape}; expected 2 axes (M, K)")
    try:
        return importlib.import_module(str(name)).csr_matrix(weight)
    except ImportError as error:
        raise ImportError(f"sparse products need {name}, which is not installed: pip install scipy") from error


def sparse_matmul(x: Array, weight: Any) -> Array:
    """Return x (N, K) @ weight (M, K) transposed, where `sparse` made the weight: (N, M)."""
    module = array_module(x)
    if getattr(weight, "ndim", 0) != 2 or not hasattr(weight, "tocsr"):
        raise TypeError(f"weight is a {type(weight).__name__}; expected what sparse(weight) makes")
    if type(weight).__module__.startswith("scipy."):
        check_host("sparse_matmul", x=x)
    elif module.__name__ != "cupy":
        raise TypeError(f"x is a {type(x).__name__}, but the weight lies on a GPU: device.to_device brings x there")
    if x.ndim != 2 or x.shape[1] != weight.shape[1]:
        raise ValueError(f"x has shape {x.shape}; expected (N, {weight.shape[1]}) to fit weight {weight.shape}")
    return (weight @ x.T).T
