"""Which lessons fit into 2, 4 and 8 hours: defined once, for `unrolled class new`, for the site and for the docs."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True)
class Syllabus:
    """A course of so many hours: its lessons in order, and in words what it leads to."""

    hours: int
    lessons: tuple[str, ...]
    words: str


START, CONVOLUTION, TRAIN = "00_start_here", "02_convolution", "05_train_a_cnn"
SYLLABI = MappingProxyType(
    {
        "2h": Syllabus(
            2,
            (START, CONVOLUTION),
            "One idea, carried to its end: a convolution in plain loops becomes one matrix product.",
        ),
        "4h": Syllabus(
            4,
            (START, CONVOLUTION, TRAIN),
            "The convolution, and a network that trains with it: your own seconds per MNIST epoch.",
        ),
        "8h": Syllabus(
            8,
            (START, "01_matrix_parallelism", CONVOLUTION, TRAIN, "06_gpu_port", "07_profiling"),
            "From Python loops to GPU speed, in four sessions; gradients and pooling come from the library.",
        ),
    }
)
"""By name. Minutes stand in the lessons' first cells. Core exercises fit; the others are for the quick or for home."""
