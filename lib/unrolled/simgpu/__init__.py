"""The simulated GPU: what a program imports as `cp` where there is no CUDA GPU.

It offers what the course uses of CuPy, under the same names and with the same errors. Results are exact: NumPy's, with
CuPy's conventions. Times are modelled (`clock`, `trace`, events), never measured. Beside CuPy's names it has `use`,
`profile`, `trace`, `clock`, `connect`, `disconnect`, `reset` and `launch_kernel`.
"""

from __future__ import annotations

import sys
from types import SimpleNamespace as _Namespace
from typing import Any

import numpy as _np

from unrolled import device as _device
from unrolled.simgpu import creation as _creation
from unrolled.simgpu import cuda, fft, linalg, random
from unrolled.simgpu import functions as _functions
from unrolled.simgpu import indexing as _indexing
from unrolled.simgpu import methods as _methods
from unrolled.simgpu import reductions as _reductions
from unrolled.simgpu import views as _views
from unrolled.simgpu.array import launch_kernel, ndarray
from unrolled.simgpu.cuda import get_default_memory_pool
from unrolled.simgpu.current import clock, connect, disconnect, profile, reset, trace, use
from unrolled.simgpu.elementwise import ElementwiseKernel

_NAMES: dict[Any, str] = {
    _np: """
        float16 float32 float64 complex64 complex128 int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool_ intp
        pi e inf nan newaxis dtype finfo iinfo result_type promote_types can_cast isscalar issubdtype floating integer
        shape ndim broadcast_shapes""",
    _creation: """
        array asarray ascontiguousarray empty zeros ones full empty_like zeros_like ones_like full_like copy arange
        copyto linspace eye identity tril triu asnumpy get_array_module size""",
    _functions: "where clip",
    _indexing: "take nonzero take_along_axis put_along_axis",
    linalg: "matmul dot tensordot inner outer vdot einsum",
    _reductions: "sort argsort searchsorted",
    _views: "broadcast_arrays transpose reshape ravel concatenate stack vstack hstack pad repeat tile roll",
}

for _module, _names in _NAMES.items():
    globals().update({name: getattr(_module, name) for name in _names.split()})
globals().update(_functions.UFUNCS | _reductions.REDUCTIONS | _views.VIEWS)
lib = _Namespace(stride_tricks=_Namespace(as_strided=_views.as_strided, sliding_window_view=_views.sliding_window_view))
round = around = _functions.round_
assert _methods  # imported for what it puts on the class


_INSTEAD = {
    "bincount": "write cp.add.at(counts, x, 1)",
    "unique": "write s = cp.sort(x) and compare s[1:] with s[:-1]",
    "fuse": "write an ElementwiseKernel",
}


def __getattr__(name: str) -> Any:
    instead = _INSTEAD.get(name, "unrolled.simgpu offers what the course uses of CuPy")
    raise AttributeError(f"{name} is not simulated: {instead}")


__all__ = ["ElementwiseKernel", "clock", "connect", "cuda", "disconnect", "get_default_memory_pool", "launch_kernel"]
__all__ += ["fft", "lib", "linalg", "ndarray", "profile", "random", "reset", "trace", "use"]

_device.register(ndarray, sys.modules[__name__])
