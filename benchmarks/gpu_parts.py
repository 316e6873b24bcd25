"""Single measurements for gpu.py: pooling's three fills, transfers, ceilings, what a launch costs."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from functools import partial
from typing import Any

import cupy as cp
import numpy as np

import gpu_timing as timing
from unrolled import kernels

Row = dict[str, Any]
SIZES = (4_000, 64_000, 1_000_000, 16_000_000, 256_000_000)
FILL_SOURCE = {"quadratic": "9,500 us", "mask": "16.3 us"}


def pooling_rows(quick: bool, rows_so_far: list[Row]) -> list[Row]:
    """Measure pooling's three fills at batch 8: source A's statement, its repair, and the source's mask.

    There are 15,680 windows of 4 places each. Raises ArithmeticError if mask and index differ.
    """
    n = 8 * 10 * 14 * 14
    rng = np.random.default_rng(0)
    places, grad = cp.asarray(rng.integers(0, 4, n)), cp.asarray(rng.random(n, dtype=np.float32))
    mask, numbers = cp.zeros((n, 4), "float32"), cp.arange(n)
    mask[numbers, places] = 1
    target = cp.zeros((n, 4), "float32")

    def quadratic() -> None:
        target[:, places] = grad

    def indexed() -> None:
        target[numbers, places] = grad

    def masked() -> None:
        cp.multiply(mask, grad[:, None], out=target)

    indexed()
    linear = target.copy()
    target.fill(0)
    masked()
    if not (target == linear).all():
        raise ArithmeticError("pooling: mask and index differ")
    ways = {"quadratic": quadratic, "indexed": indexed, "mask": masked}
    words = {"quadratic": "[:, idx]", "indexed": "[arange, idx]", "mask": "mask"}
    return [
        {
            "section": "pooling",
            "name": f"pooling fill, batch 8, {name}",
            "statement": words[name],
            **timing.costs(way),
            "source": FILL_SOURCE.get(name),
        }
        for name, way in ways.items()
    ]


def transfer_rows(quick: bool, rows_so_far: list[Row]) -> list[Row]:
    """Measure copies between host and device, in pageable and pinned memory, until the copy is done."""
    rows = []
    for size in SIZES:
        device = cp.empty(size, "uint8")
        pinned_memory = cp.cuda.alloc_pinned_memory(size)
        pinned = np.frombuffer(pinned_memory, np.uint8, size)
        pageable = np.ones(size, np.uint8)
        pinned[...] = 1
        for kind, host in (("pageable", pageable), ("pinned", pinned)):
            ways: dict[str, Callable[[], Any]] = {
                "to device": partial(device.set, host),
                "to host": partial(device.get, out=host),
            }
            for direction, way in ways.items():
                seconds = _waiting(way, 3 if size > 1e8 else 15)
                name = f"transfer {direction}, {kind}, {size:,} bytes"
                rows.append({"section": "transfers", "name": name, "bytes": size, "us": 1e6 * seconds})
                rows[-1]["gb_per_s"] = size / seconds / 1e9
    return rows


def ceiling_rows(quick: bool, rows_so_far: list[Row]) -> list[Row]:
    """Measure the fastest copy and matrix product: what a roofline is made of."""
    rows = []
    for size in (64_000_000, 2_000_000_000):
        a, b = cp.ones(size // 4, "float32"), cp.empty(size // 4, "float32")
        seconds = _device(lambda a=a, b=b: cp.copyto(b, a))
        name = f"copy on the device, {size:,} bytes"
        rows.append({"section": "ceilings", "name": name, "us": 1e6 * seconds, "gb_per_s": 2 * size / seconds / 1e9})
    rng = cp.random.default_rng(0)
    for dtype, sizes in (("float32", (256, 768, 2048, 8192)), ("float64", (4096,)), ("float16", (8192,))):
        for size in sizes:
            a, b = (rng.random((size, size), dtype="float32").astype(dtype) for _ in range(2))
            out = cp.empty_like(a)
            seconds = _device(lambda a=a, b=b, out=out: cp.matmul(a, b, out=out))
            rows.append({"section": "ceilings", "name": f"matmul {dtype} {size}", "us": 1e6 * seconds})
            rows[-1]["tflops"] = 2 * size**3 / seconds / 1e12
    return rows


def launch_rows(quick: bool, rows_so_far: list[Row]) -> list[Row]:
    """Measure each kind of call on arrays so small that only the launch counts: microseconds of host and device."""
    x, y, out = cp.ones((64, 64), "float32"), cp.ones((64, 64), "float32"), cp.empty((64, 64), "float32")
    index, mask, big = cp.arange(64), x > 0, cp.ones(1_000_000, "float32")
    mine = cp.ElementwiseKernel("T a, T b", "T c", "c = a * b + 1", "course_fused")
    generator = cp.random.default_rng(0)
    third, fourth = cp.ones((4, 64, 64), "float32"), cp.empty((4, 64, 64), "float32")
    calls: dict[str, Callable[[], Any]] = {
        "empty": lambda: cp.empty((64, 64), "float32"),
        "empty, a new large block each time": lambda: cp.empty(1_000_000, "float32"),
        "view (x[1:])": lambda: x[1:],
        "transpose": lambda: x.T,
        "reshape": lambda: x.reshape(-1),
        "ufunc (x + y)": lambda: x + y,
        "ufunc into out": lambda: cp.add(x, y, out=out),
        "ufunc with a number": lambda: cp.maximum(x, 0),
        "ufunc, 1,000,000 values": lambda: big + big,
        "comparison": lambda: x > y,
        "fill": lambda: out.fill(0),
        "zeros": lambda: cp.zeros((64, 64), "float32"),
        "copy": lambda: x.copy(),
        "copy of a transpose": lambda: cp.ascontiguousarray(x.T),
        "assign (out[...] = x)": lambda: out.__setitem__(Ellipsis, x),
        "astype": lambda: x.astype("float64"),
        "where": lambda: cp.where(mask, x, y),
        "sum of all": lambda: x.sum(),
        "sum over axis 0": lambda: x.sum(axis=0),
        "mean": lambda: x.mean(),
        "max over axis 1": lambda: x.max(axis=1),
        "argmax": lambda: x.argmax(axis=1),
        "matmul": lambda: x @ y,
        "matmul, transposed": lambda: x.T @ y,
        "matmul, batch of 4": lambda: third @ third,
        "matmul, one matrix for a batch of 4": lambda: x @ third,
        "product (our cuBLAS call)": lambda: kernels.product((x, y), (out,), kernels.PLAIN),
        "product (our cuBLAS call), batch of 4": lambda: kernels.product((x, third), (fourth,), kernels.PLAIN),
        "take (x[index])": lambda: x[index],
        "put (out[index] = x)": lambda: out.__setitem__(index, x),
        "add.at": lambda: cp.add.at(out, index, x),
        "einsum": lambda: cp.einsum("ij,ij->i", x, y),
        "tensordot": lambda: cp.tensordot(x, y, 1),
        "concatenate": lambda: cp.concatenate([x, y]),
        "random": lambda: generator.random((64, 64), dtype="float32"),
        "ElementwiseKernel": lambda: mine(x, y, out),
        "kernel of ours (RawKernel)": lambda: kernels.relu_backward((x, y), (out,)),
        "event record": lambda: cp.cuda.Event().record(),
    }
    rows = [{"section": "launches", "name": f"call: {name}", **timing.costs(call)} for name, call in calls.items()]
    one = cp.ones(1, "float32")
    waits: dict[str, Callable[[], Any]] = {
        "get of one value": lambda: one.get(),
        "float of one value": lambda: float(one[0]),
        "asarray of one value": lambda: cp.asarray(np.ones(1, np.float32)),
        "boolean mask (x[mask])": lambda: x[mask],
        "nonzero": lambda: mask.nonzero(),
        "synchronize, nothing to wait for": timing.synchronize,
    }
    waiting = [(name, 1e6 * _waiting(call, 30)) for name, call in waits.items()]
    return rows + [{"section": "launches", "name": f"call: {name}", "waits_us": us} for name, us in waiting]


def _waiting(call: Callable[[], Any], repeats: int) -> float:
    """Seconds of a call that waits for the device, which has nothing else to do."""
    import time

    found = []
    for _ in range(repeats + 2):
        timing.synchronize()
        start = time.perf_counter()
        call()
        timing.synchronize()
        found.append(time.perf_counter() - start)
    return statistics.median(found[2:])


def _device(call: Callable[[], Any]) -> float:
    return timing.device_seconds(call, timing.host_seconds(call, calls=5, rounds=3), calls=5)
