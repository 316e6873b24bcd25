"""A network as its helpers see it: whoever trains, watches or converts one takes this, and `Sequential` is one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from unrolled.data import Dataset
from unrolled.device import Array
from unrolled.nn.history import Evaluation
from unrolled.nn.layers import Layer, Shape


class Network(Protocol):
    """Layers, with all their parameters in one array (P,), their gradients (P,) and their state (S,), and a loss."""

    seed: int
    input_shape: Shape | None

    @property
    def layers(self) -> Sequence[Layer]: ...
    @property
    def parameters(self) -> Array: ...
    @property
    def gradients(self) -> Array: ...
    @property
    def state(self) -> Array: ...
    @property
    def loss(self) -> Callable[[Array, Array], tuple[Array, Array]]: ...
    @property
    def dtype(self) -> Any: ...
    def build(self, input_shape: Sequence[int], module: Any = np) -> Any: ...
    def forward(self, x: Array, training: bool = False) -> Array: ...
    def loss_and_scores(self, x: Array, labels: Array) -> tuple[Array, Array]: ...
    def evaluate(self, dataset: Dataset, batch_size: int = 256) -> Evaluation: ...
