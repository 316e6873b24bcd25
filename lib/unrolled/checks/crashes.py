"""What a call raised, in words: the error, and where in the learner's own code it came from."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Sequence
from typing import Any

from .compare import shortened
from .spec import Function

TEXT_LIMIT = 300  # characters of an error that are shown, or of a line of it
MOST_LINES = 8  # of an error that has a line for each rank
PARALLEL = "unrolled.parallel.errors"  # whose errors have; a name, since most checks need none of it
ASKS = "it asks with input(), and nobody answers here: take what you need from the arguments"


class ReportedError(Exception):
    """What a function in another process raised, as that process tells it: plain lines, the kind of error first."""

    def __init__(self, lines: Sequence[str]) -> None:
        super().__init__(*lines)
        self.lines = tuple(lines)


def crash_lines(error: BaseException, function: Function) -> list[str]:
    """Return the error, and the last line of the learner's own code that it came through, in words."""
    if isinstance(error, ReportedError):
        return list(error.lines)
    text = headline(error)
    says = shortened(text, TEXT_LIMIT)
    if type(error).__module__ == PARALLEL and "\n" in str(text):  # a line for each rank, which says where it is
        first, *ranks = str(text).splitlines()[:MOST_LINES]
        return [f"raised {type(error).__name__}: {first}", *(shortened(rank, TEXT_LIMIT) for rank in ranks)]
    lines = [f"raised {type(error).__name__}: {says}" if says else f"raised {type(error).__name__}"]
    if lines[0].startswith(("raised EOFError: EOF when reading a line", "raised StdinNotImplementedError")):
        lines = [ASKS]
    written = inspect.unwrap(function) if callable(function) else function
    space = getattr(written, "__globals__", None)  # the notebook's, which its helpers share
    passed = zip(traceback.walk_tb(error.__traceback__), traceback.extract_tb(error.__traceback__), strict=False)
    own = [summary for (frame, _), summary in passed if frame.f_globals is space]
    if own and own[-1].line:
        name = own[-1].name
        helper = f" of {name}" if name.isidentifier() and name != getattr(written, "__name__", "") else ""
        lines.append(f"in line {own[-1].lineno}{helper}: {own[-1].line}")
    return lines


def headline(error: BaseException) -> Any:
    """Return an error's text up to an empty line: below that, the compiler of kernels shows the source.

    Where the text cannot be had, that is the error itself.
    """
    try:
        return str(error).partition("\n\n")[0]
    except Exception:  # an error with ideas of its own
        return error
