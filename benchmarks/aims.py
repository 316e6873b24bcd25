"""What the rows of records aim at, and why some fall short of it.

An aim stands in a row under a key of `FIGURES`, and bounds the first figure there that the row has. A recorded figure
meets its aim or has a line in `FALLS_SHORT`: `tests/house/test_aims.py` compares them, docs/measurements.md says both.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

FIGURES: Mapping[str, tuple[str, ...]] = {
    "at_most": ("ratio",),
    "at_most_eager": ("ratio_eager",),
    "at_most_s": ("ours_s",),
    "at_most_mb": ("above_one_mb",),
    "at_least": ("faster", "speedup", "accuracy"),
}
EAGER = "the eager step calls and copies more than it has to; `nn.compiled` is ahead (compiled_cpu.json)"
FALLS_SHORT: Mapping[tuple[str, str, str], str] = {
    ("cpu", "conv2d (100, 3, 32, 32) 16 filters 5x5", "ratio"): (
        "16 filters leave little to compute for each pixel that is copied; where memory is not kept, ours is ahead"
    ),
    ("cpu_convolutions", "conv2d (16, 64, 56, 56) 64 filters 3x3 padding 1, winograd 2x2", "faster"): (
        "what aims so high is tiles of 4x4, which get there; the benchmark says so since this record was made"
    ),
    ("mnist_cnn", "mnist step, batch 8", "ratio"): EAGER,
    ("mnist_cnn", "mnist step, batch 128", "ratio"): EAGER,
    ("pooling", "max_pool2d (8, 10, 28, 28) window 2 stride 2", "ratio"): (
        "a quarter of so short a step are calls from Python; where memory is not kept, ours is ahead"
    ),
    ("gpu", "cifar epoch, 64 channels", "accuracy"): (
        "half a point, where chance among 10,000 test images is 0.4 points (one standard deviation)"
    ),
    ("memory", "timed grading, 02_convolution, 8 students", "above_one_mb"): (
        "on a machine this busy short peaks of the one student went unseen: looked at more often, one took 471 MB"
    ),
}
"""By record, row and figure. A line that is no longer needed has to go."""

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Aim:
    """A bound of a row's figure, of the side "at most" or "at least"."""

    figure: str
    side: str
    bound: float

    def met(self, value: float) -> bool:
        """Return whether a figure is within the bound."""
        return value <= self.bound if self.side == "at most" else value >= self.bound


def aims(row: Row) -> Iterator[Aim]:
    """Yield the aims of a row, of the figures that it has."""
    for key, figures in FIGURES.items():
        figure = next((figure for figure in figures if row.get(figure) is not None), None)
        if row.get(key) is not None and figure:
            yield Aim(figure, " ".join(key.split("_")[:2]), row[key])


def outcome(row: Row) -> str:
    """Return "met" or "missed", by all aims of a row; "" where it has none."""
    return ("missed" if any(missed([row])) else "met") if any(aims(row)) else ""


def missed(rows: Iterable[Row]) -> Iterator[tuple[Row, Aim]]:
    """Yield each aim that a row misses, with its row."""
    return ((row, aim) for row in rows for aim in aims(row) if not aim.met(row[aim.figure]))
