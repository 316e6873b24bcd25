"""Figures that were measured once on a real GPU, for whoever has none: lessons show them beside their own.

Each function returns one record; the benchmark that wrote it has the name of its file. `model()` sets the simulated
GPU's modelled times beside measured ones. They lie here, not in benchmarks/results/, to travel with the package.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from textwrap import fill
from typing import Any

FOLDER = Path(__file__).parent
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
        sentence = f"Measured {gpu}{versions}, on {self.date[:10]} by `{self.command}`."
        return fill(sentence, LINE, break_long_words=False, break_on_hyphens=False)


def _reader(file: str, about: str) -> Callable[[], RecordedRun]:
    """A function that returns the record in this file of the folder, read once."""

    @lru_cache(maxsize=1)
    def read() -> RecordedRun:
        record = json.loads((FOLDER / file).read_text(encoding="utf-8"))
        rows = {row["name"]: row for row in record["rows"]}
        return RecordedRun(rows, record["machine"], record["versions"], record["command"], record["date"])

    read.__doc__ = f"Return {about}."
    return read


gpu = _reader("gpu.json", "the recorded run on a real GPU")
model = _reader("simgpu.json", "the record of how the simulated GPU's modelled times compare with the measured ones")
gpu_kernels = _reader("gpu_kernels.json", "the recorded run of lesson 08's kernels on a real GPU")
lstm = _reader("lstm.json", "the recorded run of the LSTM's forms on a real GPU and its host")
convolutions = _reader("convolutions.json", "the recorded run of the methods of `conv2d` on a real GPU")
precision = _reader("precision.json", "the recorded run of fewer and smaller numbers on a CPU")
gpu_precision = _reader("gpu_precision.json", "the recorded run of smaller numbers on a real GPU")
parallel = _reader("parallel.json", "the recorded run of sums and training on several real GPUs")
attention = _reader("attention.json", "the recorded run of attention beside PyTorch's backends on a real GPU")
compiled = _reader("compiled.json", "the recorded run of compiled steps beside others' on a real GPU")
