"""device: which module holds an array, and moving arrays between modules."""

import operator
import subprocess
import sys
from unittest import mock

import numpy as np
import pytest
from strict_arrays import StrictArray, strict

from unrolled import device

HOST = np.arange(6, dtype=np.float32).reshape(2, 3)


class Special(StrictArray):
    """A subclass of a registered type."""


@pytest.mark.parametrize(
    ("arrays", "module"),
    [
        ([], np),
        ([HOST], np),
        ([np.ma.masked_array(HOST)], np),
        ([HOST, 2.0, np.float32(1), None], np),
        ([strict.asarray(HOST)], strict),
        ([2, strict.asarray(HOST), None], strict),
        ([Special(HOST)], strict),
    ],
)
def test_a_module_holds_its_arrays_and_their_subclasses(arrays: list[object], module: object) -> None:
    assert device.array_module(*arrays) is module


MIXED = r"Unsupported type <class 'numpy.ndarray'>.*StrictArray"


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ([strict.asarray(HOST), HOST], MIXED),
        *(([value], f"expected an array, got {type(value).__name__}") for value in ([1.0, 2.0], "text", {"a": 1})),
    ],
)
def test_arrays_of_two_modules_and_what_is_no_array_are_refused(arrays: list[object], words: str) -> None:
    with pytest.raises(TypeError, match=words):
        device.array_module(*arrays)


def test_to_device_and_back_keeps_values_and_dtype() -> None:
    there = device.to_device(HOST, strict)
    assert isinstance(there, StrictArray)
    assert device.to_device(there, strict) is there
    back = device.to_host(there)
    assert back.dtype == HOST.dtype
    np.testing.assert_array_equal(back, HOST)
    assert device.to_host(HOST) is HOST
    assert device.to_device(HOST, np) is HOST
    np.testing.assert_array_equal(device.to_device(there, np), HOST)
    assert device.to_host(device.to_device(1.5, strict)) == device.to_host(1.5) == 1.5


def test_synchronize_waits_for_the_device_by_array_or_module_and_never_for_numpy() -> None:
    before = strict.cuda.runtime.synchronized
    device.synchronize(strict.asarray(HOST))
    device.synchronize(strict)
    device.synchronize(HOST)
    device.synchronize(np)
    assert strict.cuda.runtime.synchronized == before + 2


def test_every_supported_name_exists_in_numpy() -> None:
    for name in device.SUPPORTED:
        operator.attrgetter(name)(np)


def test_describe_names_a_gpu_or_says_why_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    facts = device.describe()
    assert {"cpu", "gpu", "why", "cupy", "cuda", "driver"} <= set(facts)
    assert (facts["gpu"] is None) == (facts["why"] is not None)
    cupy = mock.Mock(__version__="13.3.0")
    error = RuntimeError("cudaErrorInsufficientDriver: CUDA driver version is insufficient")
    cupy.cuda.runtime.runtimeGetVersion.side_effect = error
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    facts = device.describe()
    assert (facts["gpu"], facts["cupy"]) == (None, "13.3.0")
    assert "cudaErrorInsufficientDriver" in facts["why"]


def test_cupy_registers_itself_when_one_of_its_arrays_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    module = type(sys)("cupy")
    ndarray = type("ndarray", (), {"__module__": "cupy"})
    monkeypatch.setitem(sys.modules, "cupy", module)
    monkeypatch.setattr(device, "_modules", dict(device._modules))
    assert device.array_module(ndarray()) is module


def test_device_and_ops_import_numpy_and_the_standard_library_only() -> None:
    code = (
        "import sys, numpy; before = set(sys.modules); import unrolled.device, unrolled.ops, unrolled.data; "
        "loaded = {name.partition('.')[0] for name in set(sys.modules) - before}; "
        "print(loaded - set(sys.stdlib_module_names) - {'numpy'})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "{'unrolled'}", done.stdout


def test_the_gpu_is_cupy_or_the_simulated_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "_has_cuda", lambda: False)
    assert device.gpu().__name__ == "unrolled.simgpu"
    assert device.is_simulated(device.gpu())
    assert device.array_module(device.gpu().asarray(HOST)) is device.gpu()
    assert not device.is_simulated(np)
    assert not device.is_simulated(strict)
    monkeypatch.setattr(device, "_has_cuda", lambda: True)
    monkeypatch.setitem(sys.modules, "cupy", strict)
    assert device.gpu() is strict


def test_the_simulated_gpu_has_a_clock_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    from unrolled import simgpu

    x = simgpu.zeros(3)
    monkeypatch.setattr(device.time, "perf_counter", lambda: 42.0)
    before = device.clock(x)
    x += 1
    assert 0 < before < device.clock(simgpu) < 1
    assert device.clock(x) == simgpu.clock()
    assert device.clock(np) == device.clock(HOST) == 42.0
