"""What goes to processes of ranks and comes back: functions with their arguments, results, failures."""

from __future__ import annotations

import os
import pickle
import sys
import traceback
from contextlib import suppress
from typing import Any, NoReturn

from unrolled.parallel.errors import ParallelError
from unrolled.parallel.store import Failure


def packed(work: Any, name: str = "function and arguments") -> bytes:
    """Return work as bytes; functions of a notebook as well, where cloudpickle is installed.

    Raises TypeError for what no process can get, by its name.
    """
    try:
        import cloudpickle as pickler
    except ImportError:
        pickler = pickle
    try:
        return bytes(pickler.dumps(work))
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        cure = "; pip install cloudpickle" if pickler is pickle else ""
        raise TypeError(f"{name} cannot go to another process: {error}{cure}") from error


def failure_of(rank: int, error: BaseException) -> Failure:
    """Return what to tell others of an error that a rank raised: with its trace, unless it is one between ranks."""
    if isinstance(error, ParallelError):
        return {"kind": type(error).__name__, "text": str(error)}
    trace = "".join(traceback.format_exception(error))
    return {"kind": "RankError", "text": f"rank {rank} raised {type(error).__name__}: {error}\n\n{trace}"}


def end_with(failure: Failure) -> NoReturn:
    """Print a failure and end this process: what MPI or NCCL has under way would hold it."""
    with suppress(OSError, ValueError):
        print(f"{failure['kind']}: {failure['text']}", file=sys.stderr, flush=True)
    os._exit(1)
