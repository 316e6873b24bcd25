"""What a compiled step launches, for tests of its kernels' sources: recorded from parts on arrays of NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from compiled_cases import OPTIMIZERS

from unrolled import kernels, nn
from unrolled.nn.compiler.parts import parts_of
from unrolled.nn.compiler.stages import stages_of

IMAGE = (2, 8, 8)
Record = Callable[[str, Any, Any, Any], None]


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


def record_steps(record: Record) -> None:
    """Take a step of each network at two batches, and tell every launch before it is computed."""

    def call(self: Any, inputs: Any, outputs: Any, constants: Any = kernels.NONE, **floats: float) -> None:
        record(self.name, inputs, outputs, {**constants, **floats})

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels.Kernel, "__call__", call)
        for batch in (3, 40):
            for network in networks():
                _step(network.build(IMAGE), batch)
        for optimizer in OPTIMIZERS.values():
            _update(optimizer())


def _step(network: nn.Sequential, batch: int) -> None:
    rng = np.random.default_rng(batch)
    images, names = rng.standard_normal((60, *IMAGE), dtype=np.float32), rng.integers(0, 3, 60)
    x, labels = np.empty((batch, *IMAGE), np.float32), np.empty(batch, np.int64)
    values = kernels.constants(values=int(np.prod(IMAGE)))
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
