"""A notebook's cells, run by IPython in the worker: magics, `await` at top level, plots and rich output as in Jupyter.

What a cell displays goes out as nbformat's outputs, one message each; what it prints goes to the standard streams.
"""

from __future__ import annotations

import ast
import asyncio
import base64
import io
import json
import os
import sys
import threading
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from traitlets import Type
from traitlets.config import Config

from unrolled.notebook.cells import SHARED_MAGICS
from unrolled_grader.box.wire import WireError

Emit = Callable[[Mapping[str, Any]], None]
PRINTED = 1 << 16  # characters that are printed before they are sent, and in one message
TRACEBACK_LIMIT = 20_000  # characters of a traceback that are kept
NO_TEXT = "(its text cannot be shown)"


class _Publisher(DisplayPublisher):
    """`display` and `clear_output`, as messages."""

    emit: Emit

    def publish(self, data: Any, *_: Any, transient: Any = None, update: Any = False, **__: Any) -> None:
        place = (transient or {}).get("display_id")
        self.emit({"display": _inert(data), "id": place and str(place)[:200], "update": bool(update)})

    def clear_output(self, wait: bool = False) -> None:
        self.emit({"clear": bool(wait)})


class _Hook(DisplayHook):
    """The value of a cell's last expression, as a message."""

    emit: Emit

    def write_output_prompt(self) -> None:
        pass

    def write_format_data(self, format_dict: Any, md_dict: Any = None) -> None:
        self.emit({"result": _inert(format_dict)})

    def finish_displayhook(self) -> None:
        pass


class Printed(io.TextIOBase):
    """Standard output or standard error: what cells print, as messages in order with what they display.

    What does not come by way of Python, and what a fork of this process prints, goes through the descriptor.
    """

    encoding = "utf-8"
    errors = "backslashreplace"

    def __init__(self, emit: Emit, name: str, descriptor: int) -> None:
        self._emit, self._name, self._descriptor = emit, name, descriptor
        self._parts: list[str] = []
        self._size = 0
        self._lock = threading.RLock()
        self._process = os.getpid()

    def write(self, text: str) -> int:
        if os.getpid() != self._process:
            return os.write(self._descriptor, text.encode(self.encoding, self.errors))
        with self._lock:
            self._parts.append(text)
            self._size += len(text)
            if self._size > PRINTED:
                self.flush()
        return len(text)

    def flush(self) -> None:
        with self._lock:
            text = "".join(self._parts)
            self._parts, self._size = [], 0
            for start in range(0, len(text), PRINTED):
                self._emit({"print": self._name, "text": text[start : start + PRINTED]})

    def fileno(self) -> int:
        return self._descriptor

    def writable(self) -> bool:
        return True


class Shell(InteractiveShell):
    """IPython without a terminal and without a kernel."""

    display_pub_class = Type(_Publisher)
    displayhook_class = Type(_Hook)
    system = InteractiveShell.system_piped  # so that what `!command` prints stands in the notebook
    emit: Emit
    muted = False  # whether errors are kept from the notebook

    def enable_gui(self, gui: Any = None) -> None:
        """Do nothing: there is no window to show."""

    def ask_exit(self) -> None:
        """Do nothing: after `exit`, the cells below are still run."""

    def _showtraceback(self, etype: Any, evalue: Any, stb: Any) -> None:
        if self.muted:
            return
        try:
            name, value = str(etype.__name__), str(evalue)
        except Exception:  # an exception whose own text raises
            name, value = "Exception", NO_TEXT
        lines, left = [], TRACEBACK_LIMIT
        for line in map(str, stb):
            lines.append(line[:left])
            left -= len(lines[-1])
        self.emit({"error": name[:200], "value": value[:2000], "traceback": lines})


def new_shell(emit: Emit) -> Shell:
    """Return the one shell of this process, set up to give what cells display to `emit`."""
    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.colors = "nocolor"
    for emitter in (_Publisher, _Hook, Shell):
        emitter.emit = staticmethod(_careful(emit))
    shell: Shell = Shell.instance(config=config)
    sys.modules["__main__"] = shell.user_module
    shell.enable_matplotlib("inline")  # type: ignore[no-untyped-call]
    return shell


def run_cell(shell: Shell, source: str, loop: asyncio.AbstractEventLoop) -> tuple[str, str, str] | None:
    """Run a cell within the event loop, as Jupyter does; return name and text of the error that it raised, or None.

    What stands below a line that raised is run as well, statement by statement, so that a missing library costs no
    function: then the third text is that line.
    """
    try:
        result = loop.run_until_complete(_run(shell, source))
    except KeyboardInterrupt as error:  # it came between two lines of the shell itself
        shell._showtraceback(KeyboardInterrupt, error, traceback.format_exc().splitlines()[-1:])
        return "KeyboardInterrupt", "", ""
    except Exception as error:  # as IPython itself meets with an exception whose own text raises
        return (*_described(error), "")
    raised = result.error_before_exec or result.error_in_exec
    if not isinstance(result.error_in_exec, Exception):
        return None if raised is None else (*_described(raised), "")
    try:
        return (*_described(raised), _go_on(shell, source, result.error_in_exec, loop))
    except KeyboardInterrupt:
        return "KeyboardInterrupt", "", ""


def _go_on(shell: Shell, source: str, error: Exception, loop: asyncio.AbstractEventLoop) -> str:
    """Run what stands below the line that raised; return that line, "" if nothing does. Further errors are passed over.

    Raises KeyboardInterrupt where that is interrupted.
    """
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_globals is not shell.user_ns:
        trace = trace.tb_next
    shell.muted = True
    try:
        if source.lstrip().startswith(SHARED_MAGICS):
            source = source.lstrip().partition("\n")[2]
        text = shell.transform_cell(source)  # type: ignore[no-untyped-call]
        nodes = ast.parse(text).body if trace is not None else []
        # by the line of `def`: a decorator that raises costs itself; what follows on the failing line is run, too
        below = [node for node in nodes if trace is not None and (node.lineno, node.col_offset) > (trace.tb_lineno, 0)]
        for node in below:
            for part in _forms(text, node):
                result = loop.run_until_complete(_run(shell, part))
                if isinstance(result.error_in_exec, KeyboardInterrupt | SystemExit):
                    raise result.error_in_exec
                if result.success:
                    break
        return text.split("\n")[trace.tb_lineno - 1].strip() if below and trace is not None else ""
    except SystemExit:
        return ""
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # what IPython takes and Python's parser does not
        return ""
    finally:
        shell.muted = False


def _forms(text: str, node: ast.stmt) -> list[str]:
    """A statement's source, and that without its decorators."""
    bare = ast.get_source_segment(text, node) or ""
    decorated = getattr(node, "decorator_list", ())
    above = text.split("\n")[decorated[0].lineno - 1 : node.lineno - 1] if decorated else []
    return ["\n".join([*above, bare]), *([bare] if above else [])]


def _described(error: BaseException) -> tuple[str, str]:
    try:
        return type(error).__name__, str(error)[:2000]
    except Exception:
        return type(error).__name__, NO_TEXT


async def _run(shell: Shell, source: str) -> Any:
    """As IPython's own kernel does it."""
    try:
        transformed, failed = shell.transform_cell(source), None  # type: ignore[no-untyped-call]
    except Exception:
        transformed, failed = source, sys.exc_info()
    result = None
    try:
        result = await shell.run_cell_async(
            source, store_history=True, transformed_cell=transformed, preprocessing_exc_tuple=failed
        )
    finally:
        shell.events.trigger("post_execute")
        shell.events.trigger("post_run_cell", result)
    return result


def flush() -> None:
    """Send what was printed but not sent yet."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):  # a cell may have closed or replaced it
            stream.flush()


def _careful(emit: Emit) -> Emit:
    """Emits after what was printed before. Of what is too large to be sent it says so, and the cell goes on."""

    def careful(message: Mapping[str, Any]) -> None:
        flush()
        try:
            emit(message)
        except WireError as error:
            emit({"display": {"text/plain": f"[output left out: {error}]"}})

    return careful


def _inert(data: Any) -> dict[str, Any]:
    """What is displayed, by type, as JSON can hold it; bytes, such as a picture's, in base64."""
    return {str(kind): json.loads(json.dumps(value, default=_plain)) for kind, value in data.items()}


def _plain(value: Any) -> str:
    return base64.b64encode(value).decode() if isinstance(value, bytes) else repr(value)
