"""Figures that were measured once on a real GPU, for whoever has none: lessons show them beside their own.

`gpu()` is the record that `benchmarks/gpu.py` wrote, `model()` the one of `benchmarks/simgpu.py`: the simulated GPU's
modelled times beside the measured ones. They lie here, not in benchmarks/results/, to travel with the package.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from textwrap import fill
from typing import Any

GPU = Path(__file__).parent / "gpu.json"
MODEL = Path(__file__).parent / "simgpu.json"
KERNELS = Path(__file__).parent / "gpu_kernels.json"
PRECISION = Path(__file__).parent / "precision.json"
GPU_PRECISION = Path(__file__).parent / "gpu_precision.json"
LSTM = Path(__file__).parent / "lstm.json"
CONVOLUTIONS = Path(__file__).parent / "convolutions.json"
PARALLEL = Path(__file__).parent / "parallel.json"
COMPILED = Path(__file__).parent / "compiled.json"
LINE = 100  # letters: what a notebook's output shows on a line


@dataclass(frozen=True)
class RecordedRun:
    """What one run of a benchmark measured: the rows by name, and where they come from."""

    rows: Mapping[str, Mapping[str, Any]]
    machine: Mapping[str, Any]
    versions: Mapping[str, str]
    command: str
    date: str

    def row(self, name: str) -> Mapping[str, Any]:
        """Return the row of this name. Raises KeyError, which lists the names there are, for any other."""
        if name not in self.rows:
            raise KeyError(f"the record has no row {name!r}; it has {', '.join(map(repr, self.rows))}")
        return self.rows[name]

    def figure(self, name: str, field: str, scale: float = 1.0) -> float:
        """Return one figure of a row, times `scale`. Raises KeyError, which lists what there is, for any other."""
        row = self.row(name)
        if field not in row:
            raise KeyError(f"the row {name!r} has no {field!r}; it has {', '.join(map(repr, row))}")
        return float(row[field]) * scale

    def __str__(self) -> str:
        """Where the figures come from, in one sentence on lines of up to 100 letters."""
        versions = ", ".join(f"{name} {version}" for name, version in self.versions.items())
        gpu = f"on {self.machine['gpu']}, driver {self.machine['driver']}, " if "gpu" in self.machine else "with "
        said = f"Measured {gpu}{versions}, on {self.date[:10]} by `{self.command}`."
        return fill(said, LINE, break_long_words=False, break_on_hyphens=False)


@lru_cache(maxsize=1)
def gpu() -> RecordedRun:
    """Return the recorded run on a real GPU."""
    return _read(GPU)


@lru_cache(maxsize=1)
def model() -> RecordedRun:
    """Return the record of how the simulated GPU's modelled times compare with the measured ones."""
    return _read(MODEL)


@lru_cache(maxsize=1)
def gpu_kernels() -> RecordedRun:
    """Return the recorded run of lesson 08's kernels on a real GPU, which `benchmarks/gpu_kernels.py` wrote."""
    return _read(KERNELS)


@lru_cache(maxsize=1)
def lstm() -> RecordedRun:
    """Return the recorded run of the LSTM's forms on a real GPU and its host, which `benchmarks/lstm.py` wrote."""
    return _read(LSTM)


@lru_cache(maxsize=1)
def convolutions() -> RecordedRun:
    """Return the recorded run of the methods of `conv2d` on a real GPU, which `benchmarks/convolutions.py` wrote."""
    return _read(CONVOLUTIONS)


@lru_cache(maxsize=1)
def precision() -> RecordedRun:
    """Return the recorded run of fewer and smaller numbers on a CPU, which `benchmarks/precision.py` wrote."""
    return _read(PRECISION)


@lru_cache(maxsize=1)
def gpu_precision() -> RecordedRun:
    """Return the recorded run of smaller numbers on a real GPU, which `benchmarks/gpu_precision.py` wrote."""
    return _read(GPU_PRECISION)


@lru_cache(maxsize=1)
def parallel() -> RecordedRun:
    """Return the recorded run of sums and training on several real GPUs, which `benchmarks/parallel.py` wrote."""
    return _read(PARALLEL)


@lru_cache(maxsize=1)
def compiled() -> RecordedRun:
    """Return the recorded run of compiled steps beside others' on a real GPU, which `benchmarks/compiled.py` wrote."""
    return _read(COMPILED)


def _read(file: Path) -> RecordedRun:
    record = json.loads(file.read_text(encoding="utf-8"))
    rows = {row["name"]: row for row in record["rows"]}
    return RecordedRun(rows, record["machine"], record["versions"], record["command"], record["date"])
