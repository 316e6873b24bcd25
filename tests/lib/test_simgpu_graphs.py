"""Stream capture and CUDA graphs: the rules that CuPy has, too. `tests/gpu/test_gpu_graphs.py` runs all of this there.

Each program is called once before it is captured, as CuPy compiles kernels then and the pool gets its blocks.
"""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from unrolled import device, simgpu

cp: Any = simgpu
jit = device.jit()


@jit.rawkernel()
def add_kernel(x: Any, y: Any, n: Any) -> None:
    i = jit.grid(1)
    if i < n:
        y[i] += x[i]


@pytest.fixture(autouse=True)
def no_capture_is_left() -> Iterator[None]:
    """On the simulated GPU a capture that a failing test has left would spoil those after it."""
    yield
    if device.is_simulated(cp):
        simgpu.reset()


def stream_of(**words: bool) -> Any:
    return cp.cuda.Stream(**{"non_blocking": True, **words})


def graph_of(program: Callable[[], Any], stream: Any = None, warm: bool = True) -> Any:
    """The graph of a program, which was called once before."""
    stream = stream or stream_of()
    cp.cuda.Device().synchronize()
    with stream:
        if warm:
            program()
        stream.synchronize()
        stream.begin_capture()
        program()
        return stream.end_capture()


def run(graph: Any) -> None:
    cp.cuda.Device().synchronize()  # the default stream writes buffers: here it does not race with the graph
    graph.launch()
    cp.cuda.Device().synchronize()


def floats(*values: float) -> Any:
    return cp.asarray(np.array(values, np.float32))


@contextlib.contextmanager
def capturing(**words: bool) -> Iterator[Any]:
    """A new stream that is the current one, and captures."""
    stream = stream_of(**words)
    cp.cuda.Device().synchronize()
    with stream:
        stream.begin_capture()
        yield stream


def refused(name: str) -> Any:
    """Expect that CUDA refuses what stands inside."""
    return pytest.raises(cp.cuda.runtime.CUDARuntimeError, match=f"cudaError{name}")


def test_nothing_happens_until_the_launch_and_then_each_time() -> None:
    x, y = floats(1, 2), floats(0, 0)
    with capturing() as stream:
        assert stream.is_capturing()
        cp.multiply(x, 2, out=y)
        y += 1
        graph = stream.end_capture()
    assert not stream.is_capturing()
    cp.cuda.Device().synchronize()
    assert y.tolist() == [0, 0]
    run(graph)
    assert y.tolist() == [3, 5]
    x[...] = floats(10, 20)
    run(graph)
    assert y.tolist() == [21, 41]
    with stream:
        graph.upload()
        x.fill(0)
        graph.launch(stream)
    stream.synchronize()
    assert y.tolist() == [1, 1]


def test_numbers_of_the_host_are_those_of_the_capture() -> None:
    y, rate = floats(0), [1.0]

    def step() -> None:
        cp.add(y, rate[0], out=y)
        rate[0] += 100

    graph = graph_of(step)
    y.fill(0)
    for _ in range(3):
        run(graph)
    assert y.tolist() == [303]  # 101 each time: the host's number was that while it was captured


X = np.arange(12, dtype=np.float32).reshape(3, 4) - 5
PROGRAMS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "ufunc into out": lambda x, at, out: cp.exp(x, out=out),
    "in place": lambda x, at, out: out.__iadd__(x * 2),
    "assigned": lambda x, at, out: out.__setitem__(Ellipsis, x[::-1]),
    "filled": lambda x, at, out: out.fill(3),
    "sum of all": lambda x, at, out: cp.sum(x, out=out[0, 0]),
    "sum along an axis": lambda x, at, out: cp.sum(x, axis=0, out=out[1]),
    "argmax": lambda x, at, out: out[:, 0].__setitem__(Ellipsis, x.argmax(axis=1)),
    "take": lambda x, at, out: cp.take(x, at, axis=0, out=out),
    "take one row": lambda x, at, out: cp.take(x, 1, axis=0, out=out[2]),
    "rows by indices": lambda x, at, out: out.__setitem__(Ellipsis, x[at]),
    "rows put by indices": lambda x, at, out: out.__setitem__(at, x),
    "where": lambda x, at, out: out.__setitem__(Ellipsis, cp.where(x > 0, x, 0)),
    "a kernel of one's own": lambda x, at, out: add_kernel[1, 32](x.reshape(-1), out.reshape(-1), np.int32(12)),
    "arrays within": lambda x, at, out: cp.maximum(x * 2 + 1, 0, out=out),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_graph_does_what_the_program_does(name: str) -> None:
    x, at, out = cp.asarray(X), cp.asarray(np.array([2, 0, 1])), cp.zeros((3, 4), np.float32)
    program = PROGRAMS[name]
    graph = graph_of(lambda: program(x, at, out))
    for change in (1, -3):
        x *= change
        at[...] = at[::-1].copy()
        out.fill(7)
        run(graph)
        found = cp.asnumpy(out)
        out.fill(7)
        program(x, at, out)
        np.testing.assert_array_equal(found, cp.asnumpy(out))


def test_streams_fork_and_have_to_be_joined() -> None:
    x, y, z, second = floats(1, 2), floats(0, 0), floats(0, 0), stream_of()
    with capturing() as first:
        cp.multiply(x, 10, out=y)
        second.wait_event(first.record())
        with second:
            assert second.is_capturing()
            cp.add(y, 1, out=z)
            join = second.record()
        first.wait_event(join)
        z *= 2
        graph = first.end_capture()
    assert not second.is_capturing()
    run(graph)
    assert z.tolist() == [22, 42]
    with capturing() as first:
        second.wait_event(first.record())
        with second:
            x += 1
        with refused("StreamCaptureUnjoined"):
            first.end_capture()
    second.synchronize()
    assert x.tolist() == [1, 2]


SURVIVED: dict[str, tuple[Callable[[Any], Any], type[Exception], str]] = {
    "get": (lambda x: x.get(), RuntimeError, "is capturing"),
    "asnumpy": (lambda x: cp.asnumpy(x), RuntimeError, "is capturing"),
    "float": (lambda x: float(x[0, 0]), RuntimeError, "is capturing"),
    "item": (lambda x: x[0, 0].item(), RuntimeError, "is capturing"),
    "bool": (lambda x: bool(x[0, 0]), RuntimeError, "is capturing"),
    "print": (lambda x: str(x), RuntimeError, "is capturing"),
    "to_host": (lambda x: device.to_host(x), RuntimeError, "is capturing"),
    "nonzero": (lambda x: x.nonzero(), RuntimeError, "is capturing"),
    "nanmax": (lambda x: cp.nanmax(x), RuntimeError, "is capturing"),
    "windows": (lambda x: cp.lib.stride_tricks.sliding_window_view(x, 2, 1), RuntimeError, "is capturing"),
    "asarray": (lambda x: cp.asarray([1.0, 2.0]), RuntimeError, "is capturing"),
    "to_device": (lambda x: device.to_device(X, cp), RuntimeError, "is capturing"),
    "set": (lambda x: x.set(X), RuntimeError, "is capturing"),
    "matmul": (lambda x: x @ x.T, NotImplementedError, "cuBLAS"),
    "matmul into out": (lambda x: cp.matmul(x, x.T, out=cp.empty((3, 3), np.float32)), NotImplementedError, "cuBLAS"),
    "dot": (lambda x: cp.dot(x, x.T), NotImplementedError, "cuBLAS"),
    "tensordot": (lambda x: cp.tensordot(x, x.T, 1), NotImplementedError, "cuBLAS"),
    "einsum": (lambda x: cp.einsum("ij,kj->ik", x, x), NotImplementedError, "cuBLAS"),
    "random": (lambda x: cp.random.random(3), NotImplementedError, "cuRAND"),
}


def test_products_of_vectors_and_a_norm_are_captured() -> None:
    x, y, nothing, stream = cp.asarray(X), cp.zeros(4, np.float32), cp.zeros((2, 0)), stream_of()
    cp.cuda.Device().synchronize()
    with stream:
        stream.begin_capture(cp.cuda.runtime.streamCaptureModeRelaxed)
        y[0] = x[0] @ x[0]
        y[1] = cp.linalg.norm(x)
        y[2:3] = cp.tensordot(x[:1], x[1], 1)
        y[3:] = cp.einsum("ij,j->i", x[:1, :1], x[0, :1])  # nothing is added up
        assert nothing.nonzero()[0].size == 0
        graph = stream.end_capture()
    run(graph)
    np.testing.assert_allclose(y.get(), [X[0] @ X[0], np.linalg.norm(X), X[0] @ X[1], X[0, 0] ** 2], rtol=1e-6)


@pytest.mark.parametrize("name", SURVIVED)
def test_what_cupy_itself_refuses_leaves_the_capture_as_it_was(name: str) -> None:
    refused, error, words = SURVIVED[name]
    x, y = cp.asarray(X), cp.zeros((3, 4), np.float32)
    refused(x)  # as it is, it works

    def program() -> None:
        cp.multiply(x, 2, out=y)
        if stream.is_capturing():
            with pytest.raises(error, match=words):
                refused(x)
        y.__iadd__(1)

    stream = stream_of()
    graph = graph_of(program, stream)
    y.fill(0)
    run(graph)
    np.testing.assert_array_equal(cp.asnumpy(y), cp.asnumpy(x) * 2 + 1)


@pytest.mark.parametrize(
    "wait",
    [
        lambda stream: stream.synchronize(),
        lambda stream: cp.cuda.Device().synchronize(),
        lambda stream: cp.cuda.runtime.deviceSynchronize(),
    ],
)
def test_a_host_that_waits_makes_the_capture_invalid(wait: Callable[[Any], Any]) -> None:
    y = floats(1)
    with capturing() as stream:
        y += 1
        with refused("StreamCaptureUnsupported: operation not"):
            wait(stream)
        with pytest.raises(RuntimeError, match="previous error during capture"):
            y += 1
        with pytest.raises(RuntimeError, match="invalidated the capture sequence"):
            stream.is_capturing()
        with refused("StreamCaptureInvalidated"):
            stream.end_capture()
        assert not stream.is_capturing()
        stream.synchronize()
        y += 1
    cp.cuda.Device().synchronize()
    assert y.tolist() == [2]


@pytest.mark.parametrize("mode", ["Global", "ThreadLocal"])
def test_the_pool_cannot_grow_unless_the_mode_is_relaxed(mode: str) -> None:
    stream, wide = stream_of(), {"Global": 1_234_567, "ThreadLocal": 2_345_678}[mode]
    modes = cp.cuda.runtime
    with stream:
        stream.begin_capture(getattr(modes, f"streamCaptureMode{mode}"))
        with refused("StreamCaptureUnsupported"):
            cp.empty(wide, np.float32)
        with refused("StreamCaptureInvalidated"):
            stream.end_capture()
        stream.begin_capture(modes.streamCaptureModeRelaxed)
        x = cp.empty(wide, np.float32)
        x.fill(5)
        graph = stream.end_capture()
    run(graph)
    assert float(x[-1]) == 5


def test_a_capture_ends_on_its_own_stream() -> None:
    second, x = stream_of(), floats(1)
    with capturing() as first:
        with refused("IllegalState"):
            second.end_capture()
        second.wait_event(first.record())
        with second:
            x += 1
        with refused("StreamCaptureUnmatched"):
            second.end_capture()
        with refused("StreamCaptureInvalidated"):
            first.end_capture()
    assert not first.is_capturing()
    assert not second.is_capturing()


def test_captures_stay_apart_from_other_work() -> None:
    first, second = stream_of(), stream_of()
    for begun, error in ((False, "Isolation"), (True, "Merge")):
        if begun:
            second.begin_capture()
        outside = second.record()
        first.begin_capture()
        with refused(f"StreamCapture{error}"):
            first.wait_event(outside)
        for stream in (first, second):
            with contextlib.suppress(cp.cuda.runtime.CUDARuntimeError):
                stream.end_capture()


def test_other_streams_go_on_meanwhile() -> None:
    x, y = floats(1), floats(1)
    with capturing() as stream:
        y += 1
    x += 1  # on the default stream: this is not captured
    assert not cp.cuda.Stream.null.is_capturing()
    graph = stream.end_capture()
    assert (x.tolist(), y.tolist()) == ([2], [1])
    run(graph)
    assert (x.tolist(), y.tolist()) == ([2], [2])


def test_the_default_stream_is_not_captured_nor_used_beside_a_blocking_one() -> None:
    with pytest.raises(RuntimeError, match="cannot capture on the default"):
        cp.cuda.Stream.null.begin_capture()
    x = floats(1)
    with capturing(non_blocking=False) as stream:
        x += 4
        with refused("StreamCaptureImplicit"):
            cp.cuda.Stream.null.is_capturing()
        graph = stream.end_capture()
    run(graph)
    assert x.tolist() == [5]
