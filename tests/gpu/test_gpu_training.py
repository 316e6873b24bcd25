"""Networks on a real GPU: the losses of NumPy's, optimizers, no wait and no transfer inside a step, memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from test_nn_optim import MAKERS, gradients

from unrolled import data, nn
from unrolled.device import to_host

cp: Any = pytest.importorskip("cupy", reason='CuPy is not installed: pip install -e ".[gpu]"')

RNG = np.random.default_rng(0)
IMAGES, LABELS = RNG.random((96, 2, 12, 12), dtype=np.float32), RNG.integers(0, 10, 96)
HERE = data.Dataset(IMAGES, LABELS)


def network(dtype: Any = np.float32, rate: float = 0.0) -> nn.Sequential:
    """All kinds of layers."""
    return nn.Sequential(
        *(nn.Conv2d(6, 3, padding=1), nn.ReLU(), nn.MaxPool2d(3, stride=2), nn.Conv2d(8, 3), nn.LeakyReLU()),
        *(
            nn.BatchNorm2d(),
            nn.AvgPool2d(2, stride=1),
            nn.Dropout(rate),
            nn.Flatten(),
            nn.Linear(20),
            nn.Tanh(),
            nn.Linear(12),
        ),
        *(nn.Sigmoid(), nn.Linear(12), nn.Softplus(), nn.Linear(10)),
        dtype=dtype,
    )


def there(dtype: Any = np.float32) -> Any:
    return data.Dataset(cp.asarray(IMAGES.astype(dtype)), cp.asarray(LABELS))


@pytest.mark.parametrize("name", MAKERS)
def test_the_losses_of_numpy_step_by_step(name: str) -> None:
    here = data.Dataset(IMAGES.astype(np.float64), LABELS)
    ours = network(np.float64).fit(here, epochs=3, batch_size=20, optimizer=MAKERS[name](), progress=False)
    gpu = network(np.float64).fit(there(np.float64), epochs=3, batch_size=20, optimizer=MAKERS[name](), progress=False)
    np.testing.assert_allclose(gpu.step_loss, ours.step_loss, rtol=1e-5)


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("weight_decay", [0, 0.1])
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float32, 2e-6), (np.float64, 1e-12)])
def test_optimizers(name: str, weight_decay: float, dtype: Any, tolerance: float) -> None:
    host = np.linspace(-1, 1, 1000).astype(dtype)
    on_gpu = cp.asarray(host)
    ours, other = MAKERS[name](weight_decay=weight_decay), MAKERS[name](weight_decay=weight_decay)
    for gradient in gradients(1000, 6, dtype):
        ours.step(host, gradient)
        other.step(on_gpu, cp.asarray(gradient))
    np.testing.assert_allclose(to_host(on_gpu), host, rtol=tolerance, atol=tolerance)


def step() -> Any:
    """A training step, warmed up: everything is compiled."""
    built, optimizer, train = network(rate=0.3).build((2, 12, 12), cp), nn.Adam(), there()

    def one() -> None:
        built.loss_and_scores(train.images, train.labels)
        optimizer.step(built.parameters, built.gradients)

    for _ in range(3):
        one()
    cp.cuda.runtime.deviceSynchronize()
    return one


def test_a_step_moves_nothing_between_host_and_device() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch's profiler sees every CUDA call of the process")
    one = step()
    activities = torch.profiler.ProfilerActivity
    with torch.profiler.profile(activities=[activities.CPU, activities.CUDA]) as profile:
        one()
        cp.cuda.runtime.deviceSynchronize()
    names = [event.name for event in profile.events()]
    assert any("im2col" in name for name in names), "the profiler saw none of our kernels"
    moved = [name for name in names if "HtoD" in name or "DtoH" in name]
    waited = [name for name in names if "Synchronize" in name and "cudaDeviceSynchronize" not in name]
    assert (moved, waited) == ([], [])
    assert sum("DeviceSynchronize" in name for name in names) <= 2  # ours, and the profiler's


def test_the_same_seed_trains_to_the_same_bits() -> None:
    def parameters() -> Any:
        trained = network(rate=0.3)
        trained.fit(there(), epochs=2, batch_size=20, progress=False)
        return trained.parameters

    assert (parameters() == parameters()).all()


def test_no_memory_names_the_layer_and_a_smaller_batch() -> None:
    pool = cp.cuda.MemoryPool()  # its own: what other tests left free in the common one would do
    with cp.cuda.using_allocator(pool.malloc):
        built = nn.Sequential(nn.ReLU(), nn.Flatten(), nn.Linear(3)).build((64, 64), cp)
        x = cp.zeros((4096, 64, 64), "float32")
        pool.set_limit(size=pool.total_bytes() + 1_000_000)
        with pytest.raises(MemoryError, match=r"layer 0, ReLU\(\).*a batch of 2048 instead of 4096"):
            built.forward(x)
