"""The simulated GPU as a program meets it: the border to the host, memory, time, streams, random numbers, kernels."""

import copy
import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from unrolled import device
from unrolled import simgpu as cp
from unrolled.simgpu import current
from unrolled.simgpu.machine import LocalMachine

pytestmark = pytest.mark.usefixtures("t4")
HOST = np.arange(6, dtype=np.float32).reshape(2, 3)


def test_indices_out_of_range_wrap_as_in_cupy() -> None:
    x = cp.arange(5) * 10
    assert x[cp.array([5, -6, 12])].tolist() == [0, 40, 20]
    x[cp.array([7])] = 1
    assert x.tolist() == [0, 10, 1, 30, 40]


def test_memory_comes_back_with_the_last_view() -> None:
    pool = cp.get_default_memory_pool()
    assert pool.used_bytes() == 0
    x = cp.zeros((1000, 1000), dtype="float32")
    view = x[::2, 1:].T
    del x
    gc.collect()
    assert pool.used_bytes() >= 4_000_000
    assert int(view.sum()) == 0
    del view
    gc.collect()
    assert pool.used_bytes() == 0
    assert pool.total_bytes() >= 4_000_000
    pool.free_all_blocks()
    assert pool.total_bytes() == 0
    free, total = cp.cuda.runtime.memGetInfo()
    assert free == total


def test_out_of_memory_names_the_array_its_size_and_what_is_free() -> None:
    cp.connect(LocalMachine("T4", memory_limit=1_000_000))
    kept = cp.zeros(1000)
    with pytest.raises(MemoryError, match=r"\(1000, 1000\) of float64, 8,000,000 bytes: 9\d\d,") as caught:
        cp.ones((1000, 1000))
    assert isinstance(caught.value, cp.cuda.memory.OutOfMemoryError)
    assert float(kept.sum()) == 0
    cp.disconnect()


def test_arrays_of_a_gpu_that_is_gone_are_refused() -> None:
    x = cp.zeros(3)
    cp.connect(LocalMachine("A100"))
    assert cp.profile().name == "A100"
    for use in (lambda: x + 1, x.get, lambda: x.set(np.zeros(3))):
        with pytest.raises(ValueError, match="gone"):
            use()
    with pytest.raises(RuntimeError, match="lies elsewhere"):
        cp.use("H200")
    cp.disconnect()
    assert (x + 1).tolist() == [1, 1, 1]


def test_use_chooses_a_profile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(current, "_machine", current._machine)
    monkeypatch.setattr(current, "_kept", [])
    assert cp.use("H200").name == cp.profile().name == "H200"
    assert "H200" in cp.cuda.runtime.getDeviceProperties(0)["name"].decode()
    cp.zeros(3)
    cp.reset()
    assert cp.profile().name == "H200"
    assert cp.clock() == 0
    with pytest.raises(ValueError, match="no profile 'Voodoo'"):
        cp.use("Voodoo")
    with pytest.raises(RuntimeError, match="not connected"):
        cp.disconnect()


def test_a_look_at_a_value_a_mask_and_nonzero_wait_and_integers_do_not() -> None:
    x, rows = cp.ones((1400, 1400), dtype="float32"), cp.arange(3)
    mask = cp.zeros(1400, dtype=bool)
    looks = [float, int, bool, str, cp.asnumpy, lambda v: v.item(), lambda v: v.get(), lambda v: f"{v:.2f}"]
    waiting = [lambda v: x[mask], lambda v: mask.nonzero(), lambda v: x.__setitem__(mask, 0)]
    others = [lambda v: x[rows], lambda v: x.__setitem__(rows, 0), lambda v: cp.where(x > 0, x, 0)]
    for act in (*looks, *waiting, *others):
        total = (x @ x)[0, 0]
        before = cp.clock()
        act(total)
        assert (cp.clock() - before > 1e-3) is (act not in others)
        del total


def test_streams_run_beside_each_other_and_events_order_them() -> None:
    x = cp.ones((2000, 2000), dtype="float32")
    cp.cuda.Device().synchronize()
    first, second = cp.cuda.Stream(non_blocking=True), cp.cuda.Stream()
    start, end, late = (cp.cuda.Event() for _ in range(3))
    with first:
        assert cp.cuda.get_current_stream() == first
        start.record()
        y = x @ x
        end.record()
        assert not end.done
        with pytest.raises(RuntimeError, match="not ready"):
            cp.cuda.get_elapsed_time(start, end)
    with second:
        second.wait_event(end)
        z = y + 1
    second.record(late)
    late.synchronize()
    assert late.done
    assert end.done
    assert cp.cuda.get_elapsed_time(start, end) > 1
    assert cp.cuda.get_elapsed_time(end, late) >= 0
    assert cp.cuda.get_current_stream() == cp.cuda.Stream.null
    first.synchronize()
    assert float(z[0, 0]) == 2001
    with pytest.raises(RuntimeError, match="never recorded"):
        cp.cuda.get_elapsed_time(cp.cuda.Event(), end)


@pytest.mark.parametrize("non_blocking", [False, True])
def test_the_default_stream_waits_for_others_but_for_non_blocking_ones(non_blocking: bool) -> None:
    x = cp.zeros((1024, 1024), dtype="float32")
    cp.cuda.Device().synchronize()
    with cp.trace() as trace:
        with cp.cuda.Stream(non_blocking=non_blocking):
            x @ x
        x[:1, :1] + 1
    product, *_, last = trace.launches
    assert (last.start < product.end) == non_blocking


def test_a_trace_holds_what_a_block_does_and_no_work_from_before_it() -> None:
    x = cp.asarray(HOST)
    for _ in range(2):  # the name stays ours, whatever is imported
        with cp.trace() as t:
            y = cp.exp(x) * 2
            cp.asnumpy(y)
    assert [launch.op for launch in t.launches] == ["exp", "multiply"]
    assert [transfer.nbytes for transfer in t.transfers] == [24]
    assert all(launch.where is not None and "test_simgpu_front" in launch.where for launch in t.launches)
    assert t.seconds > 0
    x = cp.ones((2000, 2000), dtype="float32")
    y = x @ x  # takes 2 ms
    with cp.trace() as t:
        cp.ones(3)
    assert t.seconds < 1e-3
    assert y.shape == (2000, 2000)


def add_at_key(x: Any) -> None:
    x[:, 1:] += 1


@pytest.mark.parametrize(
    ("program", "launches"),
    [
        (lambda x: x[1:].T.reshape(3, 1)[None, ..., ::-1], 0),
        (lambda x: x.T.reshape(6), 1),
        (lambda x: x.__iadd__(1), 1),
        (add_at_key, 1),  # it does not copy back
        (lambda x: x.__setitem__((slice(1), 0), 3), 1),
        (lambda x: x.astype("float32", copy=False), 0),
        (lambda x: cp.concatenate([x, x, x]), 1),
        (lambda x: cp.zeros(5), 1),
        (lambda x: cp.empty(5), 0),
        (lambda x: x.sum(axis=0), 1),
        (lambda x: x[cp.arange(2), 0], 2),
    ],
)
def test_launches(program: Callable[[Any], Any], launches: int) -> None:
    x = cp.asarray(HOST)
    with cp.trace() as t:
        program(x)
    assert len(t.launches) == launches


@pytest.mark.parametrize(
    ("draw", "arguments", "options"),
    [
        ("random", ((3, 4),), {}),
        ("random", ((5,),), {"dtype": np.float32}),
        ("standard_normal", ((3, 4),), {}),
        ("standard_normal", (3,), {"dtype": "float32"}),
        ("normal", (1.5, 2.0, (2, 5)), {}),
        ("uniform", (-1, 1, 7), {}),
        ("integers", (10,), {"size": 20}),
        ("integers", (5, 300), {"size": (2, 3), "dtype": "int32"}),
        ("permutation", (9,), {}),
    ],
)
@pytest.mark.parametrize("seed", [0, 12345, [1, 2]])
def test_generators_give_numpys_numbers_draw_after_draw(draw: str, arguments: Any, options: Any, seed: Any) -> None:
    host, there = np.random.default_rng(seed), cp.random.default_rng(seed)
    for _ in range(3):
        found = getattr(there, draw)(*arguments, **options)
        assert isinstance(found, cp.ndarray)
        np.testing.assert_array_equal(found.get(), getattr(host, draw)(*arguments, **options), strict=True)
        np.testing.assert_array_equal(there.random(3, "float32").get(), host.random(3, "float32"))


def test_the_common_generator() -> None:
    cp.random.seed(3)
    first = cp.random.rand(2, 3)
    for name, arguments in (
        ("randn", (4,)),
        ("randint", (0, 9, 5)),
        ("permutation", (6,)),
        ("normal", (0, 1, (2, 2))),
        ("uniform", (0, 5, 3)),
        ("random", ((2,),)),
    ):
        getattr(cp.random, name)(*arguments)
    cp.random.seed(3)
    assert cp.random.rand(2, 3).tolist() == first.tolist()
    assert (first.shape, first.dtype) == ((2, 3), np.float64)
    assert cp.random.rand(3, dtype="float32").dtype == np.float32
    assert cp.random.default_rng().random(4).tolist() != cp.random.default_rng().random(4).tolist()


def test_copies_views_and_modules() -> None:
    x = cp.asarray(HOST)
    assert device.array_module(x) is cp
    assert cp.get_array_module(x) is cp
    assert cp.get_array_module(HOST) is np
    assert cp.asarray(x) is x.astype("float32", copy=False) is x
    assert x.astype("float64", copy=False).dtype == np.float64
    assert x.astype("float32", order="F", copy=False).flags.f_contiguous
    for other in (cp.array(x), x.copy(), copy.copy(x), copy.deepcopy(x), x.astype("float32")):
        other[...] = 0
        assert float(x[1, 2]) == 5
    view = x.view()
    view[0] = 9
    assert x[0].tolist() == [9, 9, 9]
    assert x.view("uint8").shape == (2, 12)
    assert (x.nbytes, x.size, x.ndim, x.itemsize, x.strides) == (24, 6, 2, 4, (12, 4))
    there = cp.ndarray.from_view(x[:, ::-1].as_view())
    assert there.tolist() == x[:, ::-1].tolist()
    del there
    assert float(x.sum()) == 39
    x.fill(2)
    x.sort()
    assert x.tolist() == [[2, 2, 2], [2, 2, 2]]


def test_at_least_so_many_axes_gives_a_view_of_each_array() -> None:
    a, b = cp.asarray(np.float32(1)), cp.arange(3)
    rows = cp.atleast_2d(a, b)
    assert [row.tolist() for row in rows] == [[[1]], [[0, 1, 2]]]
    rows[1][...] = 7
    assert (b.tolist(), float(a)) == ([7, 7, 7], 1)
    assert cp.atleast_1d(a).tolist() == [1]


def test_any_number_of_arrays_are_put_together_on_the_device():
    parts = [np.full((2, n % 3), n, np.float32) for n in range(150)]
    joined = cp.concatenate([cp.asarray(part) for part in parts], axis=1)
    np.testing.assert_array_equal(joined.get(), np.concatenate(parts, axis=1))
    parts = [cp.asarray(np.float32(n)) for n in range(3)]
    with cp.trace() as trace:
        joined, nested = cp.array(parts), cp.asarray([parts, parts], dtype=cp.float64)
    assert not trace.transfers
    np.testing.assert_array_equal(joined.get(), np.arange(3, dtype="f4"), strict=True)
    np.testing.assert_array_equal(nested.get(), np.array([[0.0, 1, 2]] * 2), strict=True)
    with pytest.raises(TypeError, match="Unsupported type"):
        cp.array([parts[0], np.float32(1)])


def test_elementwise_kernels_are_one_launch() -> None:
    a, b = HOST, HOST - 2
    x, y = cp.asarray(a), cp.asarray(b)
    kernel = cp.ElementwiseKernel(
        "float32 x, float32 y, float32 rate",
        "float32 larger, bool first",
        lambda x, y, rate: (np.where(x > y, x, np.exp(y)) * rate + abs(x), x > y),
        "larger",
    )
    with cp.trace() as t:
        larger, first = kernel(x, y, 0.1)
    assert [launch.op for launch in t.launches] in (["fused"], ["larger"])
    expected = np.where(a > b, a, np.exp(b)) * np.float32(0.1) + abs(a)
    np.testing.assert_array_equal(larger.get(), expected, strict=True)
    np.testing.assert_array_equal(first.get(), a > b)
    out, flags = cp.empty((2, 3), "float32"), cp.empty((2, 3), bool)
    kernel(x, y, 0.1, out, flags)
    np.testing.assert_array_equal(out.get(), expected)
    assert kernel(x, y[0], 1)[0].shape == (2, 3)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_kernel_for_any_type_and_with_functions_of_either_module(dtype: str) -> None:
    kernel = cp.ElementwiseKernel("T x", "T y", lambda x: np.clip(cp.sqrt(x), 0.5, 1.5).astype("float32") + x, "k")
    host = HOST.astype(dtype)
    found = kernel(cp.asarray(host)).get()
    np.testing.assert_array_equal(found, np.clip(np.sqrt(host), 0.5, 1.5).astype("float32") + host, strict=True)
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
    for arguments, error, words in (
        ([x], TypeError, "takes 2 inputs"),
        ([x, x.astype("float64")], TypeError, "Type is mismatched"),
        ([x, HOST], TypeError, "Unsupported type"),
        ([x, x.T], ValueError, "could not be broadcast"),
    ):
        with pytest.raises(error, match=words):
            kernel(*arguments)
    with pytest.raises(ValueError, match="expected a type and a name"):
        cp.ElementwiseKernel("x", "float32 y", lambda x: x, "k")


def test_rows_that_overlap_are_not_copied_in_one_launch():
    x, move = cp.arange(6), cp.ElementwiseKernel("T x", "T y", lambda x: x + 1, "move")
    for program in (
        lambda: x.__setitem__(slice(1, None), x[:-1]),
        lambda: cp.copyto(x[:-1], x[1:]),
        lambda: x.reshape(3, 2).__setitem__(slice(1, None), x.reshape(3, 2)[:-1]),
        lambda: move(x[:-1], x[1:]),
    ):
        with pytest.raises(RuntimeError, match=r"overlap: .* Copy first, as in x\[1:\] = x\[:-1\].copy\(\)"):
            program()
    x[:3] = x[3:]
    move(x, x)
    move(x[::2], x[1::2])
