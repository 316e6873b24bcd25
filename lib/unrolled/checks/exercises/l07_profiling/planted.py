"""A step with a bottleneck planted in it: which one follows from the learner's id.

All versions compute the same, but for one factor that also follows from the id, so that a result tells whose step it
is. The source is put together from stages: the clean ones, and in one place the slow one.
"""

from __future__ import annotations

import hashlib
import linecache
from dataclasses import dataclass
from typing import Any

import numpy as np

from unrolled import device
from unrolled.checks.spec import Function
from unrolled.device import Array, Module

SIZE = 5
GROUP = 16
SHAPES = (192, 80, SIZE, SIZE), (80 * SIZE * SIZE, 1088)
"""Of the feature maps and of the weight, where the step is timed."""
FACTORS = 1000

CLEAN = {
    "begin": '''
def step(images, weight):
    """Feature maps (N, C, 5, 5) and a weight (C * 25, F): scores (N, F // 16)."""
    xp = device.array_module(images)
    n, channels = images.shape[:2]
''',
    "fade": """
    # the middle of a map counts more than its edge
    middle = 1 - 0.2 * xp.abs(xp.arange(5, dtype=xp.float32) - 2)
    x = images * middle * middle[:, None]
""",
    "mirror": """
    # every second map is mirrored
    x[1::2] = x[1::2, :, :, ::-1].copy()
""",
    "norm": """
    # each channel gets mean 0 and width 1
    x = x - x.mean(axis=(0, 2, 3), keepdims=True)
    x = x / x.std(axis=(0, 2, 3), keepdims=True)
""",
    "dense": """
    # a dense layer with ReLU
    scores = xp.maximum(x.reshape(n, -1) @ weight, 0)
""",
    "largest": """
    # of each 16 neighbouring scores the largest stays
    rows = scores.reshape(-1, 16)
    largest = rows[xp.arange(len(rows)), rows.argmax(axis=1)]
""",
    "end": """
    return FACTOR * largest.reshape(n, -1)
""",
}
"""The stages of the step, in order."""

PLANTED: dict[str, dict[str, str]] = {
    "a synchronization for each channel": {
        "norm": """
    # each channel gets mean 0 and width 1
    means = [float(x[:, c].mean()) for c in range(channels)]
    widths = [float(x[:, c].std()) for c in range(channels)]
    for c in range(channels):
        x[:, c] = (x[:, c] - means[c]) / widths[c]
"""
    },
    "a host round trip": {
        "mirror": """
    # every second map is mirrored
    for i in range(1, n, 2):
        x[i] = device.to_device(device.to_host(x[i])[:, :, ::-1].copy(), xp)
"""
    },
    "float64 by accident": {
        "norm": """
    # each channel gets mean 0 and width 1, and a gain, which is 1 for now
    gain = xp.ones(channels)
    x = x - x.mean(axis=(0, 2, 3), keepdims=True)
    x = x * gain[:, None, None] / x.std(axis=(0, 2, 3), keepdims=True)
""",
        "end": """
    return (FACTOR * largest.reshape(n, -1)).astype(images.dtype)
""",
    },
    "a loop over channels": {
        "norm": """
    # each channel gets mean 0 and width 1
    for c in range(channels):
        x[:, c] = x[:, c] - x[:, c].mean()
        x[:, c] = x[:, c] / x[:, c].std()
"""
    },
    "a quadratic pick": {
        "largest": """
    # of each 16 neighbouring scores the largest stays
    rows = scores.reshape(-1, 16)
    kept = xp.zeros_like(rows)
    kept[:, rows.argmax(axis=1)] = rows.max(axis=1, keepdims=True)
    largest = kept.max(axis=1)
"""
    },
    "a constant uploaded again and again": {
        "fade": """
    # the middle of a map counts more than its edge
    middle = 1 - 0.2 * np.abs(np.arange(5, dtype=np.float32) - 2)
    x = images.copy()
    for i in range(n):
        x[i] = x[i] * xp.asarray(np.outer(middle, middle))
"""
    },
}
"""What each bottleneck puts in the place of clean stages."""

KINDS = tuple(PLANTED)


@dataclass(frozen=True)
class PlantedStep:
    """The step of one learner: its source, what was planted, and the function made of the source."""

    learner: str
    kind: str
    factor: float
    source: str
    step: Function

    def __repr__(self) -> str:
        return f"The step of {self.learner or 'nobody yet'}:\n{self.source}"

    def inputs(self, module: Module, seed: int = 0) -> tuple[Array, Array]:
        """Return feature maps and a weight to run it on, in the module's memory."""
        images, weight = drawn(np.random.default_rng(seed), *SHAPES)
        return device.to_device(images, module), device.to_device(weight, module)


def assign(learner: Any = ...) -> PlantedStep:
    """Return the step of the learner with this id, a text or a number. There is one for `...`, too."""
    name = "" if learner is ... else str(learner).strip().lower()
    kind, factor = kind_of(number_of(name)), factor_of(number_of(name))
    source = source_of(PLANTED[kind], factor)
    return PlantedStep(name, kind, factor, source, made(source, f"<the step of {name or 'nobody'}>"))


def number_of(name: str) -> int:
    """Return the number of this learner's step, from 0 to 999; of whoever has no name, 0."""
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "big") % FACTORS if name else 0


def kind_of(number: int) -> str:
    """Return what is planted in the step with this number, from 0 to 999."""
    return KINDS[number % len(KINDS)]


def factor_of(number: int) -> float:
    """Return the factor of the step with this number: 1.001 to 2.000."""
    return round(1 + (number + 1) / FACTORS, 3)


def source_of(planted: dict[str, str], factor: float) -> str:
    """Return the step's source with these stages in place of the clean ones; a stage that is empty is left out."""
    stages = {**CLEAN, **planted}
    return "".join(stages.values()).strip().replace("FACTOR", f"{factor:.3f}") + "\n"


def made(source: str, name: str) -> Function:
    """Return the function that the source defines. Tracebacks and profilers find its lines under the name, if any."""
    space: dict[str, Any] = {"__name__": __name__, "np": np, "device": device}
    exec(compile(source, name, "exec"), space)
    if name:
        linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    step: Function = space["step"]
    return step


def drawn(rng: np.random.Generator, images: tuple[int, ...], weight: tuple[int, ...]) -> tuple[Array, Array]:
    """Draw feature maps and a weight of these shapes, float32."""
    maps, rows = 0.5 + rng.standard_normal(images), rng.standard_normal(weight) / weight[0] ** 0.5
    return maps.astype(np.float32), rows.astype(np.float32)
