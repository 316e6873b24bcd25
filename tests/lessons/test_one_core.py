"""Lesson 12 on a machine with one core: the cells that start ranks take threads, and say so."""

import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

SOLUTION = Path(__file__).parents[2] / "solutions" / "12_many_devices" / "12_many_devices.ipynb"
PRELUDE = """
import os, time
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
import numpy as np
from unrolled import data, nn, parallel
digits = data.Dataset(data.digits().images[:32], data.digits().labels[:32])
"""


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system does not let processes choose cores")
def test_the_cells_that_start_ranks_take_threads_on_one_core():
    code = [cell.source for cell in nbformat.read(SOLUTION, as_version=4).cells if cell.cell_type == "code"]
    cells = [source for source in code if "parallel.run(" in source or source.startswith("def hello")]
    network = next(source.split("\n\n\n")[0] for source in code if source.startswith("def article_network"))
    done = subprocess.run([sys.executable, "-c", "\n".join([PRELUDE, network, *cells])], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for text in ("rank 1 of 2, emulation", "These were threads again.", "These two ranks were threads that took turns"):
        assert text in done.stdout
