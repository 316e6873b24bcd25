"""The cost model: what is moved and computed, how long it takes, and where each figure is from."""

from dataclasses import fields, replace
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unrolled.simgpu import cost, operations
from unrolled.simgpu.command import Operand, View
from unrolled.simgpu.profiles import A100, H200, PROFILES, T4, GPUProfile, named

N = 1 << 22


def array(*shape: int, dtype: str = "float32", strides: tuple[int, ...] | None = None) -> View:
    size = np.dtype(dtype).itemsize
    dense = tuple(size * prod(shape[axis + 1 :]) for axis in range(len(shape)))
    return View(1, 0, shape, dense if strides is None else strides, dtype)


def of(op: str, inputs: list[Operand], out: View, profile: GPUProfile = H200, **options: Any) -> cost.Cost:
    return cost.of(op, inputs, [out], options, profile)


def work(op: str, inputs: list[Operand], out: View, profile: GPUProfile = H200, **options: Any) -> float:
    """Seconds beside the launch."""
    shortest = profile.shortest_product if op == "matmul" else profile.shortest_kernel
    return of(op, inputs, out, profile, **options).seconds - shortest


def test_a_large_addition_takes_its_bytes_at_the_memorys_bandwidth() -> None:
    price = of("add", [array(N), array(N)], array(N))
    assert (price.bytes_read, price.bytes_written, price.flops) == (8 * N, 4 * N, N)
    assert price.seconds == pytest.approx(H200.shortest_kernel + 12 * N / H200.bandwidth)


def test_a_broadcast_value_is_read_once_and_overlapping_windows_as_far_as_they_reach() -> None:
    for strides, read in (((0, 4), 4000), ((0, 0), 4), ((0, 400), 4000)):
        assert of("add", [array(1000, 1000, strides=strides), 1.0], array(1000, 1000)).bytes_read == read
    assert of("copy", [array(98, 3, strides=(4, 4))], array(98, 3)).bytes_read == 400


def test_neighbours_that_lie_apart_cost_whole_sectors() -> None:
    dense = work("copy", [array(N)], array(N))
    for step, factor in ((8, 1.5), (32, 4.5), (4000, 4.5)):
        assert work("copy", [array(N, strides=(step,))], array(N)) == pytest.approx(dense * factor)
    transposed = work("copy", [array(2048, 2048, strides=(4, 8192))], array(2048, 2048))
    assert transposed == pytest.approx(dense * (H200.transposed + 1) / 2)


def test_what_does_not_fit_in_the_l2_is_fetched_again() -> None:
    index, long = array(N, dtype="int64"), array(int(H200.l2))  # four times the cache
    expected = 32 * N * (0.25 / H200.l2_bandwidth + 0.75 / H200.scattered) + 12 * N / H200.bandwidth
    assert work("getitem", [long, index], array(N), axes=[0]) == pytest.approx(expected)


def test_atomic_additions_are_bound_by_their_rate_and_read_what_they_add_to() -> None:
    price = of("add.at", [array(N), array(N, dtype="int64")], array(N), axes=[0])
    assert price.bytes_read == 4 * N + 8 * N + 4 * N
    slow = replace(H200, atomics=1e9)
    assert work("add.at", [array(N), array(N, dtype="int64")], array(N), slow, axes=[0]) == pytest.approx(N / 1e9)


def test_a_matrix_product_counts_2mnk_and_large_ones_reach_their_efficiency() -> None:
    price = of("matmul", [array(4096, 4096), array(4096, 4096)], array(4096, 4096))
    assert price.flops == 2 * 4096**3
    assert price.seconds == pytest.approx(2 * 4096**3 / (H200.float32 * H200.matmul_efficiency), rel=0.01)
    assert of("matmul", [array(5, 7, 11), array(5, 11, 13)], array(5, 7, 13)).flops == 2 * 5 * 7 * 11 * 13
    assert of("einsum", [array(7, 11), array(13, 11)], array(7, 13), subscripts="ij,kj->ik").flops == 2 * 7 * 11 * 13


def test_a_real_transform_counts_half_of_5_n_log2_n() -> None:
    """The convention of benchFFT (fftw.org/speed/method.html), for each of the images."""
    there = of("rfft2", [array(64, 32, 3, 7)], array(64, 17, 3, 7, dtype="complex64"), lengths=[64, 32], axes=[0, 1])
    back = of("irfft2", [array(64, 17, 3, 7, dtype="complex64")], array(64, 32, 3, 7), lengths=[64, 32], axes=[0, 1])
    assert there.flops == back.flops == 21 * 5 * 2048 * 11 // 2
    assert there.bytes_written == 21 * 64 * 17 * 8
    whole = of("fft2", [array(64, 32, 3, 7)], array(64, 32, 3, 7, dtype="complex64"), lengths=[64, 32], axes=[0, 1])
    assert whole.flops == 2 * there.flops


def test_float64_costs_twice_the_bytes_and_on_a_t4_thirty_times_the_arithmetic() -> None:
    def ratio(op: str, profile: GPUProfile) -> float:
        wide = work(op, [array(N, dtype="float64")], array(N, dtype="float64"), profile)
        return wide / work(op, [array(N)], array(N), profile)

    assert ratio("negative", H200) == ratio("exp", A100) == pytest.approx(2)
    assert ratio("exp", T4) > 2.2
    square = [array(2048, 2048, dtype=dtype) for dtype in ("float32", "float64")]
    single, double = (work("matmul", [x, x], x, T4) for x in square)
    assert double == pytest.approx(32 * single)


dims = st.integers(1, 300)


@given(dims, dims, dims, st.sampled_from(sorted(PROFILES)), st.sampled_from(["float32", "float64", "int32"]))
def test_more_work_never_takes_less_time(rows: int, inner: int, columns: int, name: str, dtype: str) -> None:
    def product(m: int, k: int, n: int) -> float:
        left, right = array(m, k, dtype=dtype), array(k, n, dtype=dtype)
        return cost.of("matmul", [left, right], [array(m, n, dtype=dtype)], {}, PROFILES[name]).seconds

    seconds = product(rows, inner, columns)
    assert PROFILES[name].shortest_kernel <= seconds
    assert seconds <= min(product(rows, 2 * inner, columns), product(2 * rows, inner, columns)) * (1 + 1e-9)


def test_every_op_has_a_kind_that_every_profile_prices() -> None:
    ops = list(operations.OPERATIONS)
    ops.remove("kernel")
    for profile in PROFILES.values():
        assert {cost.kind(op, {}) for op in ops} <= set(profile.host)
        assert all(cost.host_seconds(op, {}, profile) > 0 for op in ops)
    kinds = {"add": "ufunc", "sum": "reduction", "matmul": "matmul", "getitem": "indexing", "add.at": "scatter_add"}
    kinds |= {"fill": "fill", "fused": "kernel"}
    assert {op: cost.kind(op, {}) for op in kinds} == kinds


def test_a_kernel_of_the_library_is_priced_by_what_it_says_of_itself() -> None:
    product = {"name": "product", "transpose_a": False, "transpose_b": False}
    assert cost.kind("kernel", product) == "matmul"
    assert cost.kind("kernel", {"name": "relu_backward"}) == "kernel"
    left, right, out = array(1, 512, 256), array(1, 256, 128), array(1, 512, 128)
    price = of("kernel", [left, right], out, **product)
    assert price.flops == 2 * 512 * 256 * 128
    assert price.seconds == of("matmul", [left, right], out).seconds
    assert cost.library_seconds("kernel", H200) == H200.host["library"] > 0 == cost.library_seconds("matmul", H200)
    step = of("kernel", [array(N)], array(N), name="sgd", rate=0.1)
    assert (step.bytes_read, step.bytes_written) == (8 * N, 4 * N)  # an optimizer reads what it updates
    assert step.seconds == pytest.approx(H200.shortest_kernel + 12 * N / H200.bandwidth)


def test_every_figure_has_a_source() -> None:
    for profile in PROFILES.values():
        names = {f.name for f in fields(profile)} - {"name", "host", "sources"}
        assert names | {f"host.{kind}" for kind in profile.host} == set(profile.sources)
        assert all(len(source) > 10 for source in profile.sources.values())
    with pytest.raises(ValueError, match="no source for bandwidth"):
        replace(T4, sources={k: v for k, v in T4.sources.items() if k != "bandwidth"})
    with pytest.raises(ValueError, match="T4, A100, H200"):
        named("H100")


@pytest.mark.parametrize(
    ("kind", "out", "peak"),
    [
        ("float32", "float32", H200.float32),
        ("float16", "float32", H200.tensor_float16),  # summed into float32 it still takes the tensor cores
        ("float16", "float16", H200.tensor_float16),
        ("int8", "int32", H200.tensor_int8),  # has a unit where the kernel is ours
    ],
)
def test_a_product_goes_by_the_unit_of_what_it_multiplies(kind: str, out: str, peak: float) -> None:
    n = 8192
    turn = {"name": "product", "transpose_a": 0, "transpose_b": 0}
    inputs: list[Operand] = [array(n, n, dtype=kind)] * 2
    ours = of("kernel", inputs, array(n, n, dtype=out), **turn).work
    assert ours == pytest.approx(2 * n**3 / (H200.matmul_efficiency * peak))
    if kind == "int8":
        assert of("matmul", inputs, array(n, n, dtype=kind)).work > 2 * n**3 / (H200.matmul_efficiency * H200.float32)
