"""device: which module holds an array, and moving arrays between modules."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from strict_arrays import StrictArray, strict

from unrolled import device

HOST = np.arange(6, dtype=np.float32).reshape(2, 3)


def test_numpy_holds_its_arrays_their_subclasses_and_numbers() -> None:
    assert device.array_module(HOST) is np
    assert device.array_module(np.ma.masked_array(HOST)) is np
    assert device.array_module(HOST, 2.0, np.float32(1), None) is np
    assert device.array_module() is np


def test_a_registered_module_holds_its_arrays() -> None:
    assert device.array_module(strict.asarray(HOST)) is strict
    assert device.array_module(2, strict.asarray(HOST), None) is strict


def test_a_subclass_of_a_registered_type_belongs_to_the_same_module() -> None:
    class Special(StrictArray):
        pass

    assert device.array_module(Special(HOST)) is strict


def test_arrays_of_two_modules_do_not_mix() -> None:
    with pytest.raises(TypeError, match=r"Unsupported type <class 'numpy.ndarray'>.*StrictArray"):
        device.array_module(strict.asarray(HOST), HOST)


@pytest.mark.parametrize("no_array", [[1.0, 2.0], "text", {"a": 1}])
def test_what_is_no_array_is_refused_by_name(no_array: object) -> None:
    with pytest.raises(TypeError, match=f"expected an array, got {type(no_array).__name__}"):
        device.array_module(no_array)


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


def test_a_number_can_move() -> None:
    assert device.to_host(device.to_device(1.5, strict)) == 1.5
    assert device.to_host(1.5) == 1.5


def test_synchronize_waits_for_the_device_by_array_or_module_and_never_for_numpy() -> None:
    before = strict.cuda.runtime.synchronized
    device.synchronize(strict.asarray(HOST))
    device.synchronize(strict)
    device.synchronize(HOST)
    device.synchronize(np)
    assert strict.cuda.runtime.synchronized == before + 2


def test_every_supported_name_exists_in_numpy() -> None:
    for name in device.SUPPORTED:
        found = np
        for part in name.split("."):
            found = getattr(found, part)


def test_describe_names_a_gpu_or_says_why_there_is_none() -> None:
    facts = device.describe()
    assert {"cpu", "gpu", "why", "cupy", "cuda", "driver"} <= set(facts)
    assert (facts["gpu"] is None) == (facts["why"] is not None)


def test_describe_survives_a_cupy_without_a_working_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    class Runtime:
        def runtimeGetVersion(self) -> int:  # noqa: N802 (CUDA's name)
            raise RuntimeError("cudaErrorInsufficientDriver: CUDA driver version is insufficient")

    class FakeCupy:
        __version__ = "13.3.0"

        class cuda:  # noqa: N801 (CuPy's name)
            runtime = Runtime()

    monkeypatch.setitem(sys.modules, "cupy", FakeCupy)
    facts = device.describe()
    assert facts["gpu"] is None
    assert facts["cupy"] == "13.3.0"
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


def test_without_a_cuda_gpu_the_gpu_is_the_simulated_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "_has_cuda", lambda: False)
    assert device.gpu().__name__ == "unrolled.simgpu"
    assert device.is_simulated(device.gpu())
    assert device.array_module(device.gpu().asarray(HOST)) is device.gpu()
    assert not device.is_simulated(np)
    assert not device.is_simulated(strict)


def test_with_a_cuda_gpu_it_is_cupy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "_has_cuda", lambda: True)
    monkeypatch.setitem(sys.modules, "cupy", strict)
    assert device.gpu() is strict


def test_the_clock_of_the_simulated_gpu_is_its_own_and_that_of_all_others_the_real_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from unrolled import simgpu

    x = simgpu.zeros(3)
    monkeypatch.setattr(device.time, "perf_counter", lambda: 42.0)
    before = device.clock(x)
    x += 1
    assert 0 < before < device.clock(simgpu) < 1
    assert device.clock(x) == simgpu.clock()
    assert device.clock(np) == device.clock(HOST) == 42.0


def test_the_simulated_gpu_loads_only_when_it_is_used() -> None:
    code = "import sys, unrolled, unrolled.device; sys.exit('unrolled.simgpu' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
