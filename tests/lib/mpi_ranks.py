"""What the tests of ranks over MPI share: how long ranks wait, and which processes are theirs."""

import os
import time
from pathlib import Path

MARK = "UNROLLED_TESTED_BY", str(os.getpid())  # in the environment of ranks, since other tests have some, too
LONG = 60.0  # seconds that a rank may wait where something happens
SHORT = 5.0  # where it waits in vain
SURELY = 1.0  # where it waits in vain for one that never begins: on a busy machine, too, this is all that can be said


def wait_for(event):
    while not event():
        time.sleep(0.02)


def ranks_of_ours() -> list[int]:
    """Processes that were started for ranks by this one, by their environment."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if "=".join(MARK).encode() in words:
            found.append(int(path.parent.name))
    return found
