"""Scripts that mpiexec runs, and ranks whose starter ends: what goes wrong is named and leaves no process."""

import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from subprocess import DEVNULL, PIPE, STDOUT

import pytest

pytest.importorskip("mpi4py", reason="MPI is not installed: pip install -e '.[mpi]'")
pytest.importorskip("cloudpickle", reason="cloudpickle is not installed: pip install -e '.[mpi]'")

from mpi_ranks import LONG, SHORT, SURELY, ranks_of_ours, wait_for

from unrolled.checks.limits import TimeLimitError, time_limit
from unrolled.parallel.mpi_start import launcher

pytestmark = pytest.mark.usefixtures("_no_rank_left")


SCRIPT = """
import os, signal, sys
import numpy as np
from unrolled import parallel
from unrolled.parallel import launch, mpi_start, store
fault, who, patience = sys.argv[1:]
mpi_start.START_SECONDS, store.ANSWER_SECONDS = float(patience), float(patience) / 3
if who == "1 outside" and "1" in map(os.environ.get, launch.MPI_RANKS):
    exec(fault)
with parallel.world(timeout=float(patience)) as comm:
    comm.barrier()
    if who == str(comm.rank):
        exec(fault)
    comm.all_reduce(np.ones(2**20))
"""
STOP = "os.kill(os.getpid(), signal.SIGSTOP)"
FROZEN = "rank 1 waits in all_reduce .*; the process that listens at .* does not answer"


def script(tmp_path, text):
    """Write a script, and return the command that runs it on two ranks."""
    (tmp_path / "script.py").write_text(text)
    return [launcher(), "-n", "2", sys.executable, "script.py"]


def run_script(command, folder, look):
    """Run it, and look at all that it has printed after each line; return that and its exit code."""
    with time_limit(120), subprocess.Popen(command, cwd=folder, stdout=PIPE, stderr=STDOUT, text=True) as process:
        printed = ""
        try:
            for line in process.stdout:
                printed += line
                look(printed)
        except TimeLimitError:
            process.terminate()  # mpiexec ends the ranks then
            raise
    return printed, process.returncode


@pytest.mark.parametrize(
    ("fault", "who", "says"),
    [
        ("1 / 0", "0", "RankError: rank 0 raised ZeroDivisionError"),
        (STOP, "0", FROZEN),
        (STOP, "1 outside", r"Timeout \(0:00:01\)!(.|\n)*script.py"),
    ],
)
def test_what_goes_wrong_in_a_script_is_named_and_ends_all_ranks(fault, who, says, tmp_path):
    """One that was stopped ends when it goes on: mpiexec ends such a rank as a rule, not always."""

    def go_on(printed):
        if fault == STOP and re.search(says, printed):
            for process in ranks_of_ours():
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGCONT)

    patience = LONG if fault != STOP else SURELY if who == "1 outside" else SHORT
    command = [*script(tmp_path, SCRIPT), fault, who, str(patience)]
    printed, code = run_script(command, tmp_path, go_on)
    assert re.search(says, printed), printed
    assert code


@pytest.mark.parametrize(
    ("line", "well", "says"),
    [
        ("sys.exit(0)", True, ""),
        (
            "comm.send(np.ones(3), 1 - comm.rank)",
            False,
            r"RankError: rank 0's send to rank 1 of float64 \(3,\) in script.py:7 was never received",
        ),
        (
            "comm.rank and threading.Thread(target=open, args=('fifo',)).start()",
            True,
            r"Timeout \(0:00:00.5(.|\n)* in _finalize",
        ),
    ],
    ids=["an exit with 0", "a message that nobody receives", "a thread"],
)
def test_how_a_script_ends(line, well, says, tmp_path):
    command = script(
        tmp_path,
        "import sys, threading\n"
        "import numpy as np\n"
        "from unrolled import parallel\n"
        "from unrolled.parallel import mpi\n"
        "mpi.NOTICE_SECONDS = 0.5\n"
        "with parallel.world() as comm:\n"
        f"    {line}\n",
    )
    os.mkfifo(tmp_path / "fifo")

    def end_thread(printed):
        if printed.endswith(" in _finalize\n"):
            os.close(os.open(tmp_path / "fifo", os.O_WRONLY))  # which is what the thread waits for

    printed, code = run_script(command, tmp_path, end_thread)
    assert (code == 0) == well, printed
    assert re.search(says, printed), printed


def test_ranks_end_with_the_process_that_started_them(tmp_path):
    """Killed as it is, it can tell nobody."""
    (*_, python, name) = script(
        tmp_path,
        "import pathlib, time\n"
        "from unrolled import parallel\n"
        "def program(comm):\n"
        "    pathlib.Path(str(comm.rank)).touch()\n"
        "    while True: time.sleep(0.01)\n"
        "parallel.run(program, engine='mpi')\n",
    )
    with subprocess.Popen([python, name], cwd=tmp_path, stdout=DEVNULL, stderr=DEVNULL) as starter:
        wait_for(lambda: all(Path(tmp_path, rank).exists() for rank in "01"))
        mine = ranks_of_ours()
        assert len(mine) >= 2
        starter.kill()
    wait_for(lambda: not set(mine) & set(ranks_of_ours()))


def test_the_script_of_the_docs_runs_alone_and_on_two_ranks(tmp_path):
    text = (Path(__file__).parents[2] / "docs" / "many-devices.md").read_text()
    command = script(tmp_path, text.partition("```python\n")[2].partition("```")[0].replace("epochs=5", "epochs=1"))
    found = []
    for start in (command, command[3:]):  # one after the other, as the page has them: the second is trained
        done = subprocess.run(start, cwd=tmp_path, capture_output=True, text=True, check=True)
        found += re.findall("(.) ranks: (.*) of the test images", done.stdout)
    assert found == [("2", found[0][1]), ("1", found[0][1])]
