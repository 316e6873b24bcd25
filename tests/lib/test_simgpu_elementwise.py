"""ElementwiseKernel on the simulated GPU: a NumPy function becomes one launch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from unrolled import simgpu as cp

pytestmark = pytest.mark.usefixtures("t4")
HOST = np.arange(6, dtype=np.float32).reshape(2, 3)


def test_elementwise_kernels_are_one_launch() -> None:
    x, y = cp.asarray(HOST), cp.asarray(HOST - 2)
    kernel = cp.ElementwiseKernel(
        "float32 x, float32 y, float32 rate",
        "float32 larger, bool first",
        lambda x, y, rate: (np.where(x > y, x, np.exp(y)) * rate + abs(x), x > y),
        "larger",
    )
    with cp.trace() as t:
        larger, first = kernel(x, y, 0.1)
    assert [launch.op for launch in t.launches] in (["fused"], ["larger"])
    a, b = HOST, HOST - 2
    np.testing.assert_array_equal(larger.get(), np.where(a > b, a, np.exp(b)) * np.float32(0.1) + abs(a))
    np.testing.assert_array_equal(first.get(), a > b)
    assert larger.dtype == np.float32
    out, flags = cp.empty((2, 3), "float32"), cp.empty((2, 3), bool)
    kernel(x, y, 0.1, out, flags)
    np.testing.assert_array_equal(out.get(), larger.get())
    row = kernel(x, y[0], 1)[0]
    assert row.shape == (2, 3)


def test_a_kernel_for_any_type_and_with_functions_of_either_module() -> None:
    kernel = cp.ElementwiseKernel("T x", "T y", lambda x: np.clip(cp.sqrt(x), 0.5, 1.5).astype("float32") + x, "k")
    for dtype in ("float32", "float64"):
        found = kernel(cp.asarray(HOST.astype(dtype)))
        assert found.dtype == dtype
        host = HOST.astype(dtype)
        np.testing.assert_array_equal(found.get(), np.clip(np.sqrt(host), 0.5, 1.5).astype("float32") + host)
    two = cp.ElementwiseKernel("T x, T y", "T z", lambda x, y: x + y, "two")
    with pytest.raises(TypeError, match=r"Type is mismatched\. y is float64"):
        two(cp.zeros(3, "float32"), cp.zeros(3))


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (lambda x: x if x > 0 else -x, r"np\.where"),
        (lambda x: max(x, 0), r"np\.where"),
        (lambda x: float(x), "known only on the device"),
        (lambda x: sum(x), "cannot be iterated"),
        (lambda x: np.sum(x), "cannot stand in a kernel"),
        (lambda x: np.add.reduce(x), "cannot stand in a kernel"),
        (lambda x: x + HOST, "a kernel takes single values"),
        (lambda x: (x, x), "gave 2 values; expected 1"),
        (lambda x: None, "expected 1"),
        ("y = x > 0 ? x : 0", "cannot compile CUDA text"),
    ],
)
def test_what_no_kernel_can_hold(body: Any, words: str) -> None:
    with pytest.raises(TypeError, match=words):
        cp.ElementwiseKernel("float32 x", "float32 y", body, "wrong")


def test_kernels_check_their_arguments() -> None:
    kernel = cp.ElementwiseKernel("float32 x, float32 y", "float32 z", lambda x, y: x + y, "add")
    x = cp.asarray(HOST)
    with pytest.raises(TypeError, match="takes 2 inputs"):
        kernel(x)
    with pytest.raises(TypeError, match="Type is mismatched"):
        kernel(x, x.astype("float64"))
    with pytest.raises(TypeError, match="Unsupported type"):
        kernel(x, HOST)
    with pytest.raises(ValueError, match="could not be broadcast"):
        kernel(x, x.T)
    with pytest.raises(ValueError, match="expected a type and a name"):
        cp.ElementwiseKernel("x", "float32 y", lambda x: x, "k")
