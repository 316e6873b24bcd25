"""Which array library holds an array: look at the array, never at a mode flag.

Library code asks `array_module(x)` for NumPy, CuPy or whatever module has registered the type of x, and then calls only
names in `SUPPORTED`. That list is the contract: a module that offers these names can run all of `unrolled.ops`.
"""

from __future__ import annotations

import contextlib
import importlib
import platform
import sys
import time
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias

import numpy as np

Array: TypeAlias = Any  # an array of any registered library
Module: TypeAlias = Any  # a module, or an object that offers the names of one

_NAMES = """
    add add.at arange concatenate conjugate divide empty exp fft.irfft2 fft.rfft2 full greater isfinite log log1p matmul
    maximum minimum multiply random.default_rng sign sqrt tanh where zeros
    ndarray.T ndarray.all ndarray.argmax ndarray.astype ndarray.copy ndarray.dtype ndarray.max ndarray.mean ndarray.ndim
    ndarray.reshape ndarray.shape ndarray.sum ndarray.transpose ndarray.view
"""
SUPPORTED = frozenset(_NAMES.split())
"""Dotted names, as in NumPy: the functions that library code may call on an array module, and what it may ask of arrays
besides arithmetic, comparison and indexing."""

_modules: dict[type, Module] = {np.ndarray: np}
_SIMULATED = "unrolled.simgpu"
_SCALARS = (bool, int, float, complex, np.generic)


def register(array_type: type, module: Module) -> None:
    """Let `array_module` return `module` for arrays of `array_type`.

    The module offers the names in `SUPPORTED` and three of CuPy's besides, to leave and enter the device:
    `asnumpy(x)`, `asarray(host_array)` and `cuda.runtime.deviceSynchronize()`. CuPy itself needs no registration.
    """
    _modules[array_type] = module


def array_module(*arrays: Array) -> Module:
    """Return the module that holds these arrays: NumPy for NumPy arrays and plain numbers, else the registered one.

    Plain numbers go with any module; None is skipped (an absent bias).
    Raises TypeError for what is no array, and for arrays of two modules, as CuPy does: nothing moves by itself.
    """
    first, module = None, None
    for x in arrays:
        found = _modules.get(type(x))  # nearly always there, and every operation asks: a training step some 50 times
        if found is None:
            if x is None or isinstance(x, _SCALARS):
                continue
            found = _module_of(x)
        if module is None:
            first, module = x, found
        elif found is not module:
            raise TypeError(
                f"Unsupported type {type(x)}: it cannot be combined with {type(first)}. "
                "Move one of them first, with device.to_device or device.to_host."
            )
    return np if module is None else module


def to_host(x: Array) -> Any:
    """Return x as a NumPy array; a NumPy array or a number comes back as it is."""
    module = array_module(x)
    return x if module is np else module.asnumpy(x)


def to_device(x: Array, module: Module) -> Array:
    """Return x as an array of `module` (numpy, cupy, ...); an array that is there already comes back as it is."""
    if module is np:
        return to_host(x)
    if not isinstance(x, _SCALARS) and array_module(x) is module:
        return x
    return module.asarray(to_host(x))


def synchronize(x_or_module: Array | Module) -> None:
    """Wait until the device that holds x (or that the module drives) has done all its work. NumPy never waits."""
    module = _module(x_or_module)
    if module is not np:
        module.cuda.runtime.deviceSynchronize()


def pool_bytes(x_or_module: Array | Module) -> int | None:
    """Return the bytes that the device's memory pool holds; None where there is none, as with NumPy.

    A pool gives nothing back by itself. So after some work this is the most that was ever in use, rounded up to blocks.
    """
    pool = getattr(_module(x_or_module), "get_default_memory_pool", None)
    return None if pool is None else int(pool().total_bytes())


def gpu() -> Module:
    """Return CuPy where a CUDA GPU works, else the simulated GPU."""
    return importlib.import_module("cupy" if _has_cuda() else _SIMULATED)


def jit() -> Module:
    """Return what compiles kernels written in Python: CuPy's names where a CUDA GPU works, else the simulated GPU's."""
    return importlib.import_module("unrolled.jit" if _has_cuda() else f"{_SIMULATED}.jit")


def is_simulated(module: Module) -> bool:
    """Return whether an array module is the simulated GPU, whose times are modelled."""
    return getattr(module, "__name__", None) == _SIMULATED


def clock(x_or_module: Array | Module) -> float:
    """Return the seconds on the host's clock, from any beginning; on the modelled one for the simulated GPU.

    Waits for nothing: a GPU may still be at work. See `synchronize`.
    """
    module = _module(x_or_module)
    return float(module.clock()) if is_simulated(module) else time.perf_counter()


def describe() -> dict[str, Any]:
    """Return what runs arrays here: {"cpu", "gpu", "why", "cupy", "cuda", "driver"}.

    "gpu" is a name or None, "why" says why there is no GPU (else None).
    """
    facts: dict[str, Any] = {"cpu": _cpu_name(), "gpu": None, "why": None}
    return facts | {"cupy": None, "cuda": None, "driver": None} | _describe_cupy()


def _module(x_or_module: Array | Module) -> Module:
    """The module itself, or the one that holds the array."""
    is_module = isinstance(x_or_module, ModuleType) or any(x_or_module is module for module in _modules.values())
    return x_or_module if is_module else array_module(x_or_module)


@lru_cache(maxsize=1)
def _has_cuda() -> bool:
    return bool(_describe_cupy().get("gpu"))


def _cpu_name() -> str:
    """The processor's name where the system tells it, else its kind."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].replace("(R)", "").replace("(TM)", "").strip()
    return platform.processor() or platform.machine()


def _describe_cupy() -> dict[str, Any]:
    try:
        import cupy  # type: ignore[import-not-found, unused-ignore]
    except ImportError as error:
        return {"why": f'CuPy cannot be imported ({error}); pip install -e ".[gpu]" on a machine with a GPU'}
    facts: dict[str, Any] = {"cupy": cupy.__version__}
    try:
        runtime = cupy.cuda.runtime
        facts |= {"cuda": runtime.runtimeGetVersion(), "driver": runtime.driverGetVersion()}
        name = runtime.getDeviceProperties(0)["name"].decode()
        cupy.arange(3).sum().get()  # a driver alone is not enough: compile and run one kernel
    except Exception as error:  # CUDA, the compiler and the loader each raise a kind of their own
        return facts | {"why": f"CuPy {cupy.__version__} finds no working GPU: {error}"}
    return facts | {"gpu": name}


def _module_of(x: Array) -> Module:
    for array_type in type(x).__mro__:
        if array_type in _modules:
            return _modules[array_type]
    if type(x).__module__.partition(".")[0] == "cupy":
        register(type(x), sys.modules["cupy"])
        return sys.modules["cupy"]
    raise TypeError(f"expected an array, got {type(x).__name__}; numpy.array(...) makes one")
