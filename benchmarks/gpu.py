"""The library on a real GPU through CuPy, beside PyTorch's eager mode on the same GPU in the same run.

    python benchmarks/gpu.py [--only SECTION ...] [--quick] [--json lib/unrolled/records/gpu.json]

Sections: steps (training steps of the sources' networks and of Keras's example; the same network, optimizer and data in
PyTorch, on the device already; loss and gradients compared first), channels (source B's on the CPU beside the GPU),
layers (the step drilled down), pooling (source A's three fills), transfers, ceilings, launches (what each kind of call
costs), mnist, cifar (real data; needs MNIST and CIFAR-10, or UNROLLED_DATA). What fails leaves its error as a row.

`ours_s` and `peer_s` are medians of interleaved blocks, timed by CUDA events; `ratio` is the median of the pairs.
`host_us` is what issuing the work costs the host, `device_us` what doing it costs the device. All in float32; TF32 is
off on both sides. `source` is what a source's author measured, on other machines (2015, 2020).
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import common

Row = dict[str, Any]
SECTIONS = {
    "steps": ("gpu_steps", "step_rows"),
    "channels": ("gpu_steps", "cpu_rows"),
    "layers": ("gpu_steps", "layer_rows"),
    "pooling": ("gpu_parts", "pooling_rows"),
    "transfers": ("gpu_parts", "transfer_rows"),
    "ceilings": ("gpu_parts", "ceiling_rows"),
    "launches": ("gpu_parts", "launch_rows"),
    "mnist": ("gpu_training", "mnist_rows"),
    "cifar": ("gpu_training", "cifar_rows"),
}
"""The function that measures a section, given --quick and the rows so far."""


def guarded(name: str, section: Callable[[], list[Row]]) -> list[Row]:
    """Return the rows of a section, or its error as one."""
    try:
        return section()
    except Exception as error:
        traceback.print_exc()
        return [{"section": name, "name": name, "error": f"{type(error).__name__}: {error}"}]


def each(cases: Iterable[Any], rows: Callable[[Any], list[Row]]) -> list[Row]:
    """Return the rows of each case, or its error as one."""
    return [row for case in cases for row in guarded(case.name, lambda case=case: rows(case))]


def machine() -> dict[str, Any]:
    """Return what ran besides the host: the GPU, its driver, CUDA."""
    from unrolled import device

    facts = device.describe()
    return {"gpu": facts["gpu"], "driver": driver(), "cuda": facts["cuda"]}


def lacking(chosen: argparse.Namespace) -> bool:
    """Say so where no GPU works and more than the host is to be measured."""
    from unrolled import device

    if device.is_simulated(device.gpu()) and chosen.only != ["CPU"]:
        print("no GPU works here: --only CPU measures what runs without one", file=sys.stderr)
        return True
    return False


def driver() -> str | None:
    """Return the version of the driver as NVIDIA names it, None where nvidia-smi does not tell."""
    import subprocess

    command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[0]
    except (OSError, subprocess.CalledProcessError, IndexError):
        return None


def versions() -> dict[str, str]:
    """Return the versions of what is installed of the packages that take part."""
    names = [name for name in ("unrolled", "numpy", "cupy", "torch") if importlib.util.find_spec(name)]
    found = {name: str(importlib.import_module(name).__version__) for name in names}
    if library := sys.modules.get("cudnn"):  # only where it took part
        found |= {"nvidia-cudnn-frontend": library.__version__, "cudnn": str(library.backend_version())}
    return found


def write(chosen: argparse.Namespace, rows: Sequence[Row], more: Mapping[str, Any] | None = None) -> None:
    """Print each section as a table, and write the record; `more` facts of the machine."""
    for section in dict.fromkeys(row.get("section") for row in rows):
        shown = [row for row in rows if row.get("section") == section]
        plain = (int, float, str, type(None))
        common.print_table(
            [{k: v for k, v in row.items() if k not in ("section", "source") and isinstance(v, plain)} for row in shown]
        )
        print(flush=True)
    save(chosen, rows, more)


def save(chosen: argparse.Namespace, rows: Sequence[Row], more: Mapping[str, Any] | None = None) -> None:
    """Write the record, if asked for; after every section, so that a run cut short leaves what it has."""
    common.save(chosen, rows, (), machine() | dict(more or {}), versions())


def measured(
    chosen: argparse.Namespace, section: Callable[[str, list[Row]], list[Row]], more: Mapping[str, Any] | None = None
) -> list[Row]:
    """Measure the sections asked for, `section(name, rows so far)`; write and print them. Return the rows."""
    rows: list[Row] = []
    for name in chosen.only:
        rows += guarded(name, partial(section, name, rows))
        save(chosen, rows, more)
    write(chosen, rows, more)
    return rows


def main() -> None:
    """Measure the sections asked for."""
    chosen = common.sections(common.parser(__doc__), SECTIONS)
    import torch

    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False

    def section(name: str, rows: list[Row]) -> list[Row]:
        module, function = SECTIONS[name]
        found: list[Row] = getattr(importlib.import_module(module), function)(chosen.quick, rows)
        return found

    measured(chosen, section)


if __name__ == "__main__":
    main()
