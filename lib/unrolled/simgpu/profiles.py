"""Figures of GPUs, each with its source."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Profile:
    """What the cost model knows of a GPU and of the calls that drive it. Bytes, seconds, operations a second."""

    name: str
    memory: int
    bandwidth: float
    float32: float
    float64: float
    float16: float
    shortest_kernel: float
    link_bandwidth: float
    link_latency: float
    host: dict[str, float]


_HOST = {
    "ufunc": 6e-6,
    "reduction": 16e-6,
    "matmul": 12e-6,
    "indexing": 20e-6,
    "copy": 6e-6,
    "kernel": 6e-6,
    "transfer": 10e-6,
    "allocate": 1e-6,
    "reserve": 1e-4,
    "synchronize": 4e-6,
    "event": 2e-6,
}

PROFILES = {
    "T4": Profile("T4", 16 * 10**9, 260e9, 8.1e12, 8.1e12 / 32, 16e12, 3e-6, 6e9, 10e-6, _HOST),
    "A100": Profile("A100", 40 * 10**9, 1400e9, 19.5e12, 9.7e12, 39e12, 2e-6, 12e9, 10e-6, _HOST),
    "H200": Profile("H200", 141 * 10**9, 4300e9, 67e12, 34e12, 134e12, 2e-6, 25e9, 10e-6, _HOST),
}
