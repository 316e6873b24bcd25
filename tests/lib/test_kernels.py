"""Kernels: NumPy functions against NumPy's road, CUDA source against NumPy functions."""

from collections.abc import Callable
from functools import cache
from itertools import product
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import cuda_on_cpu
import numpy as np
import pytest
from compiled_cases import NETWORKS, OPTIMIZERS
from hypothesis import given
from hypothesis import strategies as st
from ops_cases import Geometry, geometries, pooling_geometries
from strict_arrays import StrictArray, strict
from test_nn_optim import MAKERS, gradients
from test_ops_contract import CALLS

from unrolled import data, device, kernels, nn, ops
from unrolled.device import to_host
from unrolled.nn import training
from unrolled.nn.compiler.parts import parts_of
from unrolled.nn.compiler.stages import stages_of
from unrolled.ops.conv import half_conv2d
from unrolled.ops.windows import Windows

RNG = np.random.default_rng(5)
SAMPLE = (2, 8, 8)
# cuBLAS multiplies, and blocks that wait for each other need a GPU: tests/gpu has these.
COMPILED = sorted(name for name, kernel in kernels.KERNELS.items() if type(kernel) is kernels.Kernel)
SCRATCH = {"dense_tiles": 1, "dense_tiles_backward": 3, "convolution_weights": 2}
"""By kernel: the output that only the CUDA source writes, for the parts of its sums."""
DOES_NOT_FIT = pytest.mark.parametrize("change", [{"oh": 3}, {"kh": 10**9}, {"ph": 10**9}, {"sh": 0}, {"c": 7}])


@pytest.fixture(scope="module")
def launched():
    """The names of the kernels that were launched; for this module, the strict arrays have kernels."""
    names: list[str] = []

    def launch_kernel(name: str, inputs: Any, outputs: Any, options: Any) -> None:
        names.append(name)
        assert all(isinstance(x, StrictArray) for x in (*inputs, *outputs))
        assert all(type(value) in (bool, int, float) for value in options.values())
        kernel = kernels.by_name(name)
        kernel.numpy([x.host for x in inputs], [x.host for x in outputs], options)
        assert kernel.flops(inputs, outputs, options) >= 0

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(strict, "launch_kernel", launch_kernel, raising=False)
        more = {"ndarray.flags", "ndarray.size", "ascontiguousarray"}
        patch.setattr(device, "SUPPORTED", device.SUPPORTED | more)
        yield names


pytestmark = pytest.mark.usefixtures("launched")


def on_kernels(function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """What a function gives on arrays that have kernels, back on the host."""
    there = [strict.asarray(x) if isinstance(x, np.ndarray) else x for x in arguments]
    result = function(*there, **options)
    return tuple(map(to_host, result)) if isinstance(result, tuple) else to_host(result)


def same(function: Callable[..., Any], *arguments: Any, tolerance: float = 1e-10) -> Any:
    """Return what the function gives on the host; fail unless it gives the same with kernels."""
    expected = function(*arguments)
    pairs = (expected,) if not isinstance(expected, tuple) else expected
    found = on_kernels(function, *arguments)
    for one, other in zip(found if isinstance(found, tuple) else (found,), pairs, strict=True):
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)
    return expected


@given(geometries(), st.booleans())
def test_convolution_and_columns_both_ways(g: Geometry, with_bias: bool) -> None:
    x, weight, bias = g.arrays()
    y = same(ops.conv2d, x, weight, bias if with_bias else None, g.stride, g.padding)
    grad = np.random.default_rng(1).normal(size=y.shape)
    same(ops.conv2d_backward, grad, x, weight, g.stride, g.padding)
    columns = same(ops.im2col, x, *g[4:7], tolerance=0)
    same(ops.col2im, columns, x.shape, *g[4:7], tolerance=1e-12)


PALETTES = st.sampled_from([(0.0, 1.0, 2.0), (0.0, -0.0, np.nan), (-np.inf, np.inf, 0.0), (-np.inf, -np.inf, 1.0)])


@given(pooling_geometries(), PALETTES)
def test_pooling_both_ways(g: Geometry, palette: Any) -> None:
    """Maxima with their first places, and means."""
    x, options = np.random.default_rng(g.seed).choice(np.array(palette), (g.n, g.c, *g.size)), g[4:7]
    y, _ = same(ops.max_pool2d_with_indices, x, *options, tolerance=0)
    same(ops.max_pool2d, x, *options, tolerance=0)
    grad = np.random.default_rng(1).normal(size=y.shape)
    same(ops.max_pool2d_backward, grad, x, *options, tolerance=1e-12)
    same(ops.avg_pool2d, g.arrays()[0], *options, tolerance=1e-12)
    same(ops.avg_pool2d_backward, grad, x.shape, *options, tolerance=1e-12)


@pytest.mark.parametrize("label", [-1, 3, 10**12])
def test_a_label_out_of_range_makes_the_loss_nan_and_nothing_else(label: int) -> None:
    scores = RNG.normal(size=(3, 3)).astype(np.float32)
    loss, grad = on_kernels(ops.softmax_cross_entropy, scores, np.array([0, label, 2]))
    assert np.isnan(loss)
    expected = ops.softmax_cross_entropy(scores, np.array([0, 1, 2]))[1]
    np.testing.assert_allclose(grad[[0, 2]], expected[[0, 2]], rtol=1e-6)
    assert np.isfinite(grad).all()


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("weight_decay", [0, 0.1])
def test_an_optimizer_takes_one_launch_and_no_scratch(launched: list[str], name: str, weight_decay: float) -> None:
    host = np.linspace(-1, 1, 9, dtype=np.float32)
    there = strict.asarray(host)
    ours, other = MAKERS[name](weight_decay=weight_decay), MAKERS[name](weight_decay=weight_decay)
    launched.clear()
    for step, gradient in enumerate(gradients(9, 5)):
        ours.step(host, gradient, rate=1 / (step + 1))
        other.step(there, strict.asarray(gradient), rate=1 / (step + 1))
    assert len(launched) == 5
    assert sum(len(array) for array in other._scratch) <= 2
    np.testing.assert_allclose(to_host(there), host, rtol=1e-6, atol=1e-7)


def test_a_step_of_source_a_launches_each_kernel_once(launched: list[str]) -> None:
    images, labels = RNG.random((4, 1, 28, 28), dtype=np.float32), np.array([1, 2, 3, 4])
    network, twin = (NETWORKS["source A's"]().build((1, 28, 28), module) for module in (strict, np))
    optimizer, other = nn.Adam(), nn.Adam()
    launched.clear()
    loss, _ = network.loss_and_scores(strict.asarray(images), strict.asarray(labels))
    optimizer.step(network.parameters, network.gradients)
    expected, _ = twin.loss_and_scores(images, labels)
    other.step(twin.parameters, twin.gradients)
    np.testing.assert_allclose(to_host(loss), expected, rtol=1e-5)
    np.testing.assert_allclose(to_host(network.gradients), twin.gradients, rtol=1e-3, atol=1e-6)
    linear, linear_backward = ["product", "add_row"], ["product", "sum_first_axis", "product"]
    forward = ["im2col", "filters", "product", "relu", "max_pool_with_indices", *linear, "relu", *linear]
    convolution_backward = ["max_unpool", "relu_backward", "im2col", "product", "sum_filters"]
    backward = [*linear_backward, "relu_backward", *linear_backward, *convolution_backward]
    assert launched == [*forward, "softmax_cross_entropy", "mean", *backward, "adam"]


@DOES_NOT_FIT
@pytest.mark.parametrize("name", ["im2col", "col2im", "max_pool", "max_pool_with_indices", "max_unpool", "avg_pool"])
def test_options_that_do_not_fit_the_arrays_are_an_error(name: str, change: dict[str, int]) -> None:
    """They may come from anyone: a simulated GPU believes nothing."""
    if name not in ("im2col", "col2im") and "c" in change:
        return
    options = Windows.over((4, 4), 2, 2, 0).constants(1) | change
    image, places, columns = np.zeros((2, 1, 4, 4)), np.zeros((2, 1, 2, 2)), np.zeros((2, 4, 4))
    arrays = {
        "im2col": ([image], [columns]),
        "col2im": ([columns], [image]),
        "max_pool": ([image], [places]),
        "max_pool_with_indices": ([image], [places, places]),
        "max_unpool": ([places, places], [image]),
        "avg_pool": ([image], [places]),
    }
    with pytest.raises(ValueError, match="do not fit"):
        kernels.by_name(name).numpy(*arrays[name], options)


@pytest.mark.parametrize(
    ("module", "missing", "act", "words"),
    [
        (
            ops,
            "affine",
            lambda: nn.Sequential(nn.Flatten(), nn.Linear(3)).forward(np.zeros((8, 2, 2), np.float32)),
            r"layer 1, Linear\(3\): no memory left for its result; try a batch of 4 instead of 8 \(out of memory alloc",
        ),
        (
            strict,
            "empty",
            lambda: on_kernels(ops.conv2d, np.zeros((64, 1, 4, 4), np.float32), np.zeros((3, 1, 3, 3), np.float32)),
            r"the columns of im2col, \(64, 9, 4\) of float32, 0 MB; try a batch of 32 instead of 64 \(out of memory",
        ),
    ],
    ids=["of a layer", "of an array"],
)
def test_what_no_memory_says(module: Any, missing: str, act: Any, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    no_memory = Mock(side_effect=MemoryError("out of memory allocating 64 bytes"))
    monkeypatch.setattr(module, missing, no_memory, raising=False)
    with pytest.raises(MemoryError, match=words):
        act()


def test_training_reports_the_most_memory_that_the_pool_held(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = SimpleNamespace(total_bytes=lambda: 31_457_280)
    monkeypatch.setattr(strict, "get_default_memory_pool", lambda: pool, raising=False)
    images, labels = RNG.random((6, 1, 28, 28), dtype=np.float32), np.arange(6)
    on_device = data.Dataset(strict.asarray(images), strict.asarray(labels))
    assert "at most 31 MB held on the device" in str(NETWORKS["source A's"]().fit(on_device, epochs=1, progress=False))
    assert NETWORKS["source A's"]().fit(data.Dataset(images, labels), epochs=1, progress=False).device_bytes is None


def products() -> list[tuple[Any, Any]]:
    """Pairs of small matrices: as they lie, and each of them turned."""
    a, b = RNG.normal(size=(5, 3)).astype(np.float32), RNG.normal(size=(3, 4)).astype(np.float32)
    return [(a, b), (np.asfortranarray(a), b), (a, np.asfortranarray(b)), (b.T, a.T)]


def test_a_product_without_cublas_takes_what_lies_in_one_piece(launched: list[str]) -> None:
    launched.clear()
    for a, b in products():
        out = strict.asarray(np.zeros((len(a), b.shape[1]), np.float32))
        kernels.matmul(strict.asarray(a), strict.asarray(b), out)
        np.testing.assert_allclose(to_host(out), a @ b, rtol=1e-5)
        np.testing.assert_array_equal(kernels.matmul(a, b, np.zeros_like(a @ b)), a @ b)
    assert launched == ["small_product"] * 4
    a, b, out = map(strict.asarray, (*products()[0], np.zeros((5, 4), np.float32)))
    for wrong, words in (
        ((a, b, strict.asarray(np.zeros((5, 3), np.float32))), r"out \(5, 3\)"),
        ((a, b, strict.asarray(np.zeros((5, 4)))), "out float64"),
        ((strict.asarray(np.zeros((5, 6), np.float32))[:, ::2], b, out), "a does not lie in one piece"),
    ):
        with pytest.raises(ValueError, match=words):
            kernels.matmul(*wrong)


def networks() -> list[nn.Sequential]:
    """All kinds of parts; windows that overlap, filters of more places than a warp has lanes."""
    return [
        nn.Sequential(
            *(nn.Conv2d(16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Dropout(0.3), nn.Flatten()),
            *(nn.Linear(9), nn.ReLU(), nn.Linear(5)),
        ),
        nn.Sequential(
            *(nn.Conv2d(3, (3, 2), stride=(1, 2), padding=1), nn.MaxPool2d(3, stride=2, padding=1), nn.ReLU()),
            *(nn.Conv2d(4, 2), nn.Flatten(), nn.Linear(34)),
        ),
        nn.Sequential(nn.Conv2d(2, 6), nn.Flatten(), nn.Linear(6), nn.Linear(3)),
    ]


def record_steps(record: Callable[[str, Any, Any, Any], None]) -> None:
    """Take a step of each network at two batches, and tell every launch before it is computed."""

    def call(self: Any, inputs: Any, outputs: Any, constants: Any = kernels.NONE, **floats: float) -> None:
        record(self.name, inputs, outputs, {**constants, **floats})

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels.Kernel, "__call__", call)
        for batch in (3, 40):
            for network in networks():
                _step(network.build(SAMPLE), batch)
        for optimizer in OPTIMIZERS.values():
            _update(optimizer())


def _step(network: nn.Sequential, batch: int) -> None:
    rng = np.random.default_rng(batch)
    images, names = rng.standard_normal((60, *SAMPLE), dtype=np.float32), rng.integers(0, 3, 60)
    x, labels = np.empty((batch, *SAMPLE), np.float32), np.empty(batch, np.int64)
    values = kernels.constants(values=int(np.prod(SAMPLE)))
    kernels.gather((images, names, rng.permutation(60)[:batch]), (x, labels), values)
    found, head = parts_of(np, stages_of(network, dropout=True), batch)
    number, befores = np.array([7]), [x]
    for part in found:
        part.forward(befores[-1], number)
        befores.append(part.outputs)
    grad = head.run(befores.pop(), labels, np.empty(1, np.float32))
    for part in reversed(found):
        grad = part.backward(befores.pop(), grad, number)


def _update(optimizer: nn.Optimizer) -> None:
    rng = np.random.default_rng(0)
    parameters, gradients = rng.standard_normal((2, 300), dtype=np.float32)
    memory = optimizer.prepare(parameters)
    kernel, options = optimizer.next_launch()
    row = np.array(list(options.values()), np.float32)
    kernels.FROM_ROW[kernel.name]((gradients, row), (parameters, *memory))


@cache
def calls() -> dict[str, list[tuple[Any, Any, dict[str, Any]]]]:
    """What the operations above launch, by kernel: inputs, outputs before, options; some of each."""
    seen: dict[str, dict[Any, Any]] = {name: {} for name in kernels.KERNELS}

    def launch_kernel(name: str, inputs: Any, outputs: Any, options: Any) -> None:
        record(name, [x.host for x in inputs], [x.host for x in outputs], options)

    def record(name: str, inputs: Any, outputs: Any, options: Any) -> None:
        arrays = list(inputs), list(outputs)
        fixed = tuple(value for value in options.values() if type(value) is int), bool(options.get("weight_decay"))
        if len(seen[name]) < 5 and outputs[0].size:
            seen[name].setdefault(fixed, ([x.copy() for x in arrays[0]], [x.copy() for x in arrays[1]], dict(options)))
        kernels.by_name(name).numpy(*arrays, options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(strict, "launch_kernel", launch_kernel, raising=False)
        x, weight = (strict.asarray(RNG.random(shape, np.float32)) for shape in ((40, 1, 5, 5), (2, 1, 3, 3)))
        ops.conv2d_backward(ops.conv2d(x, weight, None, 1, 1), x, weight, 1, 1)
        ops.relu(strict.asarray(np.array([1, -1, 0, np.nan], np.float32)))
        ops.relu(strict.asarray(np.array([1, -1, 0, -0.0, np.nan, -np.nan, np.inf, -np.inf, -1e-7, 6e-8], np.float16)))
        for shape, kernel_size in (((3, 2, 7, 5), 3), ((1, 3, 6, 6), 2), ((5, 1, 5, 3), 1)):
            halves = (RNG.normal(size=each) for each in (shape, (4, shape[1], kernel_size, kernel_size), 4))
            y = half_conv2d(*(strict.asarray(x.astype(np.float16)) for x in halves), padding=1)
        ops.max_pool2d(ops.relu(y), 2)
        for d, t, dtype in ((24, 150, np.float32), (70, 90, np.float32), (33, 20, np.float16)):
            q, k = (RNG.normal(size=(2, 2, length, d)).astype(dtype) for length in (t, t if d == 70 else 200))
            lengths = strict.asarray(np.array([0, 65]))
            ops.attention(*map(strict.asarray, (q, k, k[::-1].copy())), lengths, causal=d == 70)
        for call in CALLS.values():
            call(*(strict.asarray(x) for x in call.arrays))
        for make, decay in product(MAKERS.values(), (0, 0.1)):
            optimizer, parameters = make(weight_decay=decay), strict.asarray(np.ones(300, np.float32))
            optimizer.step(parameters, strict.asarray(gradients(300, 1)[0]))
        for shape in ((3, 3, 5, 7), (1, 2, 9, 9)):
            x = strict.asarray(np.round(RNG.normal(size=shape), 1).astype(np.float32))
            y, where = ops.max_pool2d_with_indices(x, 3, 2, 1)
            ops.max_unpool2d(y, where, shape[2:], Windows.over(shape[2:], 3, 2, 1))
            ops.avg_pool2d_backward(y, shape, 3, 2, 1)
        wide = strict.asarray(RNG.normal(size=(70, 45)).astype(np.float32))
        labels = strict.asarray(RNG.integers(-1, 46, 70))
        ops.softmax_cross_entropy(wide, labels)
        training._right(wide, labels)
        for a, b in products():
            kernels.matmul(*map(strict.asarray, (a, b, np.zeros((len(a), b.shape[1]), a.dtype))))
    record_steps(record)
    return {name: list(found.values()) for name, found in seen.items()}


@pytest.fixture(scope="module")
def cuda() -> cuda_on_cpu.Library:
    """All of them, compiled."""
    return cuda_on_cpu.Library(
        cuda_on_cpu.version(kernels.by_name(name), inputs, options)
        for name, found in calls().items()
        if name in COMPILED
        for inputs, _, options in found
    )


@pytest.mark.skipif(cuda_on_cpu.COMPILER is None, reason="g++ compiles the CUDA sources for the CPU; it is not here")
@pytest.mark.parametrize("name", COMPILED)
def test_the_cuda_source_computes_what_the_numpy_function_computes(cuda: cuda_on_cpu.Library, name: str) -> None:
    kernel = kernels.by_name(name)
    assert calls()[name]
    for inputs, outputs, options in calls()[name]:
        expected = [x.copy() for x in outputs]
        for x in [] if kernel.updates else (*outputs, *expected):
            x.fill(0 if x.dtype == np.int32 else 77)  # what is not written must not pass; counters are 0
        kernel.numpy(inputs, expected, options)
        cuda_on_cpu.launch(cuda, kernel, [np.ascontiguousarray(x) for x in inputs], outputs, options)
        for number, (found, wanted) in enumerate(zip(outputs, expected, strict=True)):
            if number == SCRATCH.get(name):
                continue
            rtol = 2**-10 if name == "attention" and found.dtype == np.float16 else 1e-5  # summed in another order
            np.testing.assert_allclose(found, wanted, rtol=rtol, atol=1e-7 if kernel.updates else 1e-6)
