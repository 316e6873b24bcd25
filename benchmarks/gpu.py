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
import importlib.util
import json
import os
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

import common

Row = dict[str, Any]


def parser(description: str | None) -> argparse.ArgumentParser:
    """Return what reads --only, and what every benchmark takes."""
    reader = common.parser(description)
    reader.add_argument("--only", nargs="+", choices=SECTIONS, default=list(SECTIONS), metavar="SECTION")
    return reader


def steps(quick: bool) -> list[Row]:
    import gpu_steps

    cases = (*gpu_steps.SOURCE_A, gpu_steps.KERAS, *gpu_steps.SOURCE_B)
    return [
        row for case in cases for row in guarded(case.name, lambda case=case: [gpu_steps.row(case, 5 if quick else 15)])
    ]


def channels(quick: bool) -> list[Row]:
    import gpu_steps

    return gpu_steps.cpu_rows(FOUND)


def layers(quick: bool) -> list[Row]:
    import gpu_steps

    return [row for case in gpu_steps.SOURCE_A[:2] for row in gpu_steps.layer_rows(case)]


def pooling(quick: bool) -> list[Row]:
    import gpu_parts

    return gpu_parts.pooling_rows()


def transfers(quick: bool) -> list[Row]:
    import gpu_parts

    return gpu_parts.transfer_rows()


def ceilings(quick: bool) -> list[Row]:
    import gpu_parts

    return gpu_parts.ceiling_rows()


def launches(quick: bool) -> list[Row]:
    import gpu_parts

    return gpu_parts.launch_rows()


def mnist(quick: bool) -> list[Row]:
    import gpu_training

    return gpu_training.mnist_rows()


def cifar(quick: bool) -> list[Row]:
    import gpu_training

    return gpu_training.cifar_rows()


SECTIONS: dict[str, Callable[[bool], list[Row]]] = {
    section.__name__: section
    for section in (steps, channels, layers, pooling, transfers, ceilings, launches, mnist, cifar)
}
FOUND: list[Row] = []
"""Rows so far."""


def guarded(name: str, section: Callable[[], list[Row]]) -> list[Row]:
    """Return the rows of a section, or its error as one."""
    try:
        return section()
    except Exception as error:
        traceback.print_exc()
        return [{"section": name, "name": name, "error": f"{type(error).__name__}: {error}"}]


def machine() -> dict[str, Any]:
    """Return what ran: the GPU, its driver, CUDA, and the host."""
    from unrolled import device

    facts = device.describe()
    return {"gpu": facts["gpu"], "driver": driver(), "cuda": facts["cuda"], **common.machine()}


def driver() -> str | None:
    """Return the version of the driver as NVIDIA names it, None where nvidia-smi does not tell."""
    import subprocess

    asked = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.split()[0]
    except (OSError, subprocess.CalledProcessError, IndexError):
        return None


def versions() -> dict[str, str]:
    """Return the versions of what is installed of the packages that take part."""
    names = [name for name in ("unrolled", "numpy", "cupy", "torch") if importlib.util.find_spec(name)]
    found = common.versions(()) | {name: str(importlib.import_module(name).__version__) for name in names}
    if library := sys.modules.get("cudnn"):  # only where it took part
        found |= {"nvidia-cudnn-frontend": library.__version__, "cudnn": str(library.backend_version())}
    return found


def write(chosen: argparse.Namespace, rows: Sequence[Row]) -> None:
    """Print each section as a table, and write the record."""
    show(rows)
    save(chosen, rows)


def show(rows: Sequence[Row]) -> None:
    """Print each section as a table."""
    for section in dict.fromkeys(row.get("section") for row in rows):
        shown = [row for row in rows if row.get("section") == section]
        keep = [key for key in dict.fromkeys(key for row in shown for key in row) if key not in ("section", "source")]
        plain = (int, float, str, type(None))
        print_rows = [{key: row.get(key) for key in keep if isinstance(row.get(key), plain)} for row in shown]
        common.print_table(print_rows)
        print(flush=True)


def save(chosen: argparse.Namespace, rows: Sequence[Row], more: Mapping[str, Any] | None = None) -> None:
    """Write the record, if asked for; after every section, so that a run cut short leaves what it has."""
    if chosen.json:
        record = {
            "command": common.command(),
            "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
            "commit": os.environ.get("COMMIT") or common.commit(),
            "machine": machine() | dict(more or {}),
            "versions": versions(),
            "rows": list(rows),
        }
        chosen.json.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def main() -> None:
    """Measure the sections asked for."""
    chosen = parser(__doc__).parse_args()
    import torch

    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    for name in chosen.only:
        FOUND.extend(guarded(name, lambda name=name: SECTIONS[name](chosen.quick)))
        save(chosen, FOUND)
    write(chosen, FOUND)


if __name__ == "__main__":
    main()
