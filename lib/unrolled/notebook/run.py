"""Execute a notebook in a kernel of its own and gather what its checks found.

`unrolled check`, the tests of the lessons and the grader all run notebooks through `execute`. Whatever the notebook
does, raises, prints or kills, the answer is a result: an exception leaves it only for a wrong argument.
"""

from __future__ import annotations

import copy
import logging
import math
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionComplete, CellTimeoutError, DeadKernelError
from nbformat import NotebookNode
from nbformat.v4 import new_output

from unrolled.checks.report import MIME, Report
from unrolled.notebook import cells
from unrolled.notebook.cells import grade_id

STREAM_LIMIT = 1_000_000  # characters of print kept of one cell: a loop that prints for ever must not fill the memory
RICH_LIMIT = 50_000_000  # characters of pictures and other displayed data that are kept of one cell
IOPUB_TIMEOUT = 10  # seconds that a cell's last outputs may take to arrive after the cell has ended or was interrupted
LONGEST_SOCKET = 100  # bytes of the name of a socket that every system takes, less its number

LOG = logging.getLogger(__name__)  # nbclient's log, a logger of its own: what it would say stands in the result
LOG.addHandler(logging.NullHandler())
LOG.propagate = False

TIMEOUT, STDIN = "CellTimeoutError", "StdinNotImplementedError"
ASKS = "it waits for somebody to type, as input() does, and nobody is there in this run: put the value into the cell"
OnCell = Callable[[int, NotebookNode], None]


@dataclass(frozen=True)
class CellReport:
    """What one check displayed: its structured verdict, and the cell that displayed it."""

    check: str
    cell_index: int
    grade_id: str | None
    data: dict[str, Any]  # what `checks.Report.to_dict` wrote, in the notebook's own kernel: do not trust it

    def report(self) -> Report:
        """Return the verdict as a `checks.Report`. Raises ValueError if the notebook displayed data of another form."""
        try:
            return Report.from_dict(self.data)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise ValueError(f"cell {self.cell_index} shows a malformed verdict of {self.check}: {error!r}") from error


@dataclass(frozen=True)
class CellError:
    """A cell that raised, ran out of time or lost its kernel. Index -1 stands for the kernel's start."""

    cell_index: int
    grade_id: str | None
    name: str
    message: str

    def __str__(self) -> str:
        place = f"cell {self.cell_index}" + (f" ({self.grade_id})" if self.grade_id else "")
        return f"{place}: {self.name}: {self.message}"


@dataclass(frozen=True)
class Executed:
    """A notebook after its run. `reports` are keyed by the name of the check, `errors` are in order of the cells."""

    notebook: NotebookNode
    reports: dict[str, CellReport]
    errors: tuple[CellError, ...]
    stopped: str | None  # why the run ended before the last cell, or None
    seconds: float


def execute(
    notebook: str | Path | NotebookNode,
    *,
    cwd: str | Path,
    env: Mapping[str, str] | None = None,
    cell_timeout: float = 60,
    on_cell: OnCell | None = None,
) -> Executed:
    """Execute a copy of `notebook` in the folder `cwd`, with this interpreter, and return it with its reports.

    Errors do not end the run. A cell that takes longer than `cell_timeout` seconds is interrupted; if it goes on
    regardless, or if the kernel dies, the rest of the notebook is not run and the result says so. Outputs that the
    notebook brought along are dropped first, so that every report is of this run.

    `env` is added to the environment of this process. Unless it holds UNROLLED_JOURNAL, the journal goes to a
    temporary file, so that the learner's own is not touched. `on_cell(index, cell)` is called after each code cell.

    Raises ValueError for a file that is not a notebook, and for a time that is not a positive number.
    """
    if not 0 < cell_timeout < math.inf:
        raise ValueError(f"cell_timeout must be a positive number of seconds, got {cell_timeout}")
    nb = cells.read(notebook) if isinstance(notebook, (str, Path)) else copy.deepcopy(notebook)
    for cell in nb.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="unrolled-") as scratch:
        environment = {**os.environ, "UNROLLED_JOURNAL": str(Path(scratch) / "journal.json"), **(env or {})}
        client = _Client(nb, cell_timeout, Path(scratch) / "kernel")
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}  # the cells' own output goes another way
        try:
            with client.setup_kernel(env=environment, cwd=str(cwd), **quiet):
                client.run_cells(on_cell)
        except (RuntimeError, OSError) as error:
            client.stop(-1, None, type(error).__name__, f"the kernel could not be started or stopped: {error}")
    return Executed(nb, reports(nb), tuple(client.errors), client.stopped, time.monotonic() - started)


def reports(nb: NotebookNode) -> dict[str, CellReport]:
    """Return the verdicts in the outputs by check: of several the last, but those in cells with a grade_id first."""
    found: dict[str, CellReport] = {}
    for index, cell in enumerate(nb.cells):
        for output in cell.get("outputs", ()):
            data = output.get("data", {}).get(MIME)
            if not isinstance(data, dict) or not isinstance(data.get("check"), str):
                continue
            report = CellReport(data["check"], index, grade_id(cell), data)
            earlier = found.get(report.check)
            if earlier is None or report.grade_id or not earlier.grade_id:
                found[report.check] = report
    return found


class _Client(NotebookClient):
    """Runs cells in this very interpreter, whatever kernelspecs the machine has; keeps count of what a cell shows."""

    def __init__(self, nb: NotebookNode, cell_timeout: float, socket: Path) -> None:
        specs = KernelSpecManager(kernel_dirs=[])
        # Sockets of our own, at `socket`-1 and so on: a port that is found free may be another's once the kernel is up.
        private = os.name != "nt" and len(os.fsencode(socket)) < LONGEST_SOCKET
        where = {"transport": "ipc", "ip": str(socket)} if private else {}
        super().__init__(
            nb,
            km=AsyncKernelManager(kernel_name="python3", kernel_spec_manager=specs, **where),
            timeout_func=lambda cell: cell_timeout,  # its plain `timeout` takes whole numbers alone
            allow_errors=True,
            interrupt_on_timeout=True,
            error_on_timeout={"ename": TIMEOUT, "evalue": "", "traceback": []},
            iopub_timeout=IOPUB_TIMEOUT,
            store_widget_state=False,
            log=LOG,
        )
        self.owns_km = True
        self.cell_timeout = cell_timeout
        self.errors: list[CellError] = []
        self.stopped: str | None = None
        self.timed_out: set[int] = set()  # cells that were interrupted
        self.idle: set[int] = set()  # cells after which the kernel said that it was idle
        self.sizes: dict[tuple[int, bool], int] = {}
        self.on_cell_executed = self.note_reply

    def run_cells(self, on_cell: OnCell | None) -> None:
        for index, cell in enumerate(self.nb.cells):
            if cell.cell_type != "code":
                continue
            try:
                self.execute_cell(cell, index)
            except DeadKernelError:
                self.stop(index, cell, "DeadKernelError", "the kernel died; the cells below were not run")
            except CellTimeoutError:
                self.stop(index, cell, TIMEOUT, "the kernel went silent; the cells below were not run")
            else:
                self.note_error(index, cell)
            if on_cell is not None:
                on_cell(index, cell)
            if self.stopped:
                self.shutdown_kernel = "immediate"
                return

    def stop(self, index: int, cell: NotebookNode | None, name: str, message: str) -> None:
        self.stopped = message
        self.errors.append(CellError(index, grade_id(cell) if cell else None, name, message))
        if cell is not None:
            cell.outputs.append(new_output("error", ename=name, evalue=message, traceback=[f"{name}: {message}"]))

    def note_error(self, index: int, cell: NotebookNode) -> None:
        """Keep the cell's error. A cell that ran out of time and did not even end when interrupted ends the run."""
        if index in self.timed_out and index not in self.idle:
            message = f"still busy after {self.cell_timeout:g} s and an interrupt; the cells below were not run"
            self.stop(index, cell, TIMEOUT, message)
        elif index in self.timed_out:
            self.errors.append(CellError(index, grade_id(cell), TIMEOUT, f"interrupted after {self.cell_timeout:g} s"))
        else:
            raised = [(output.ename, output.evalue) for output in cell.outputs if output.output_type == "error"]
            for name, says in raised[:1]:
                self.errors.append(CellError(index, grade_id(cell), name, ASKS if name == STDIN else says))

    def note_reply(self, cell: NotebookNode, cell_index: int, execute_reply: dict[str, Any]) -> None:
        if execute_reply["content"].get("ename") == TIMEOUT:
            self.timed_out.add(cell_index)

    def process_message(self, msg: dict[str, Any], cell: NotebookNode, cell_index: int) -> NotebookNode | None:
        try:
            return super().process_message(msg, cell, cell_index)
        except CellExecutionComplete:
            self.idle.add(cell_index)
            raise

    def output(
        self, outs: list[NotebookNode], msg: dict[str, Any], display_id: str | None, cell_index: int
    ) -> NotebookNode | None:
        """Take an output in, as far as the limits allow."""
        stream = msg["msg_type"] == "stream"
        limit = STREAM_LIMIT if stream else RICH_LIMIT
        before = self.sizes.get((cell_index, stream), 0)
        after = before + len(msg["content"]["text"] if stream else repr(msg["content"]))
        self.sizes[cell_index, stream] = after
        if after <= limit:
            return super().output(outs, msg, display_id, cell_index)
        if before <= limit:
            kept = msg["content"]["text"][: limit - before] if stream else ""
            outs.append(new_output("stream", name="stdout", text=f"{kept}\n[output cut after {limit:,} characters]\n"))
        return None
