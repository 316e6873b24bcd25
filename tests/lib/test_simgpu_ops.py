"""All of `unrolled.ops` and `unrolled.nn` on the simulated GPU, by its kernels and by the road of any other module."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from compiled_cases import OPTIMIZERS
from strict_arrays import strict
from test_ops_contract import CALLS, Call

from unrolled import device, nn, ops
from unrolled import simgpu as cp
from unrolled.data import Dataset
from unrolled.simgpu.machine import LocalMachine

every_call = pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())


@pytest.fixture(params=["kernels", "plain"])
def road(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A fresh GPU; "plain" has no kernels of the library, so that only array functions are left."""
    if request.param == "plain":
        monkeypatch.delattr(cp, "launch_kernel")
    cp.connect(LocalMachine("T4"))
    yield request.param
    cp.disconnect()


def run(call: Call, module: Any) -> Any:
    arrays = [module.asarray(x) for x in (*call.arrays, *call.integers)]
    found = call.function(*arrays, *call.options)
    return found if isinstance(found, tuple) else (found,)


@every_call
def test_ops_give_what_they_give_on_numpy(call: Call, road: str) -> None:
    """By the plain road to the last bit: `strict` goes it, too, and computes with NumPy.

    But for transforms: how NumPy lays out what they give depends on its version, and products of it round accordingly.
    """
    for found, expected, exact in zip(run(call, cp), call(), run(call, strict), strict=True):
        assert device.array_module(found) is cp
        assert found.dtype == expected.dtype
        assert found.shape == expected.shape
        np.testing.assert_allclose(cp.asnumpy(found), expected, rtol=1e-4, atol=1e-5)
        if road == "plain" and "fft" not in call.function.__name__:
            np.testing.assert_array_equal(cp.asnumpy(found), device.to_host(exact))


@every_call
def test_ops_refuse_to_mix_host_and_device(call: Call, road: str) -> None:
    if len(call.arrays) > 1:
        with pytest.raises(TypeError, match="Unsupported type"):
            call.function(cp.asarray(call.arrays[0]), *call.arrays[1:], *call.integers, *call.options)


@pytest.mark.parametrize("name", [name for name in CALLS if "loops" not in name and "positions" not in name])
def test_ops_neither_move_nor_wait(name: str, road: str) -> None:
    call = CALLS[name]
    arrays = [cp.asarray(x) for x in (*call.arrays, *call.integers)]
    with cp.trace() as t:
        call.function(*arrays, *call.options)
    assert not t.transfers
    assert not t.synchronizations


@pytest.mark.parametrize(
    ("method", "tells"),
    [("gemm", "im2col"), ("auto", "im2col"), ("fft", "rfft2"), ("winograd", "matmul")],  # gemm's product is a kernel
)
@pytest.mark.usefixtures("t4")
def test_a_convolution_goes_the_way_that_is_asked_for(method: str, tells: str) -> None:
    x, weight, grad = (cp.ones(shape, dtype="float32") for shape in ((2, 3, 6, 6), (4, 3, 3, 3), (2, 4, 4, 4)))
    for function, arrays in ((ops.conv2d, [x, weight]), (ops.conv2d_backward, [grad, x, weight])):
        with cp.trace() as trace:
            function(*arrays, method=method)
        names = {launch.op for launch in trace.launches}
        assert tells in names
        assert ("im2col" in names, "rfft2" in names) == (tells == "im2col", tells == "rfft2")


def network() -> nn.Sequential:
    images = nn.Conv2d(4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(3, stride=2, padding=1), nn.Conv2d(3, 2), nn.Tanh()
    pooled = nn.BatchNorm2d(), nn.AvgPool2d(2, stride=1), nn.Dropout(0.3), nn.Flatten()
    return nn.Sequential(*images, *pooled, nn.Linear(12), nn.Sigmoid(), nn.Linear(5), seed=3)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_training_gives_what_it_gives_on_numpy(name: str, road: str) -> None:
    rng = np.random.default_rng(1)
    images, labels = rng.random((48, 2, 8, 8), dtype=np.float32), rng.integers(0, 5, 48)
    networks = {module: network() for module in (np, cp, *([strict] if road == "plain" else []))}
    histories = {}
    for module, net in networks.items():
        train, plan = Dataset(module.asarray(images), module.asarray(labels)), {"epochs": 2, "batch_size": 16}
        histories[module] = net.fit(train, **plan, optimizer=OPTIMIZERS[name](), progress=False)
    np.testing.assert_allclose(histories[cp].loss, histories[np].loss, rtol=1e-4)
    parameters = cp.asnumpy(networks[cp].parameters)
    np.testing.assert_allclose(parameters, networks[np].parameters, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(cp.asnumpy(networks[cp].state), networks[np].state, rtol=1e-3, atol=1e-4)
    if road == "plain":
        assert histories[cp].loss == histories[strict].loss
        np.testing.assert_array_equal(parameters, device.to_host(networks[strict].parameters))


def test_no_transfer_and_no_wait_inside_of_a_training_step(road: str) -> None:
    images, labels = cp.random.rand(16, 2, 8, 8, dtype="float32"), cp.random.randint(0, 5, 16)
    net, optimizer = network(), nn.Adam()
    for _ in range(2):
        with cp.trace() as t:
            loss, _ = net.loss_and_scores(images, labels)
            optimizer.step(net.parameters, net.gradients)
    assert t.launches
    assert not t.transfers + t.synchronizations
    assert float(loss) > 0
