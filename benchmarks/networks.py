"""The networks that the sources train, and Keras's example: what several benchmarks measure."""

from __future__ import annotations

from unrolled import nn


def source_a(seed: int = 0) -> nn.Sequential:
    """Return source A's network."""
    return nn.Sequential(
        nn.Conv2d(10, 3, padding=1, weight_scale=0.05),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(100, weight_scale=0.05),
        nn.ReLU(),
        nn.Linear(10, weight_scale=0.05),
        seed=seed,
    )


def keras_example(dropout: float = 1.0) -> nn.Sequential:
    """Return Keras's example for MNIST, as source A's peer; dropout 0 turns it off, to compare results."""
    return nn.Sequential(
        *(nn.Conv2d(32, 3), nn.ReLU(), nn.Conv2d(64, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Dropout(0.25 * dropout)),
        *(nn.Flatten(), nn.Linear(128), nn.ReLU(), nn.Dropout(0.5 * dropout), nn.Linear(10)),
    )


def source_b(channels: int, window: int = 4, stride: int | None = None, second: bool = False) -> nn.Sequential:
    """Return source B's network with what it tried: channels, windows, a second dense layer."""
    more = (nn.Linear(1000), nn.ReLU()) if second else ()
    return nn.Sequential(
        *(nn.Conv2d(channels, 5), nn.MaxPool2d(window, stride), nn.ReLU(), nn.Flatten()),
        *(nn.Linear(1000), nn.ReLU(), *more, nn.Linear(10)),
    )
