"""The simulated GPU, seen from a worker: a machine of the judge's, reached through the conversation with the judge."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from unrolled.simgpu.command import Inputs, InvalidCommandError, Machine, Options, OutOfMemoryError, View, Views
from unrolled.simgpu.profiles import PROFILES
from unrolled.simgpu.trace import Trace

Ask = Callable[[int, str, Sequence[Any], Mapping[str, Any]], Mapping[str, Any]]
ERRORS: Mapping[str, type[Exception]] = {
    error.__name__: error
    for error in (InvalidCommandError, OutOfMemoryError, ValueError, TypeError, IndexError, ZeroDivisionError)
}
"""What a machine raises. Anything else becomes a RuntimeError."""


class RemoteMachine(Machine):
    """A machine of the judge's: each command is a question to the judge about the object with this number."""

    def __init__(self, ask: Ask, number: int, profile: str) -> None:
        self.profile = PROFILES[profile]
        self._ask, self._number = ask, number
        self._freed: list[int] = []

    def free(self, buffer: int) -> None:
        """Note that a buffer was freed, and tell the judge with the next command: finalizers call this at any time."""
        self._freed.append(buffer)

    def launch(self, op: str, inputs: Inputs, outputs: Views, options: Options | None = None, stream: int = 0) -> None:
        operands = [[x.real, x.imag] if isinstance(x, complex) else x for x in inputs]
        self._call("launch", op, operands, list(outputs), dict(options or {}), stream)

    def upload(self, view: View, data: bytes, stream: int = 0, blocking: bool = True) -> None:
        self._call("upload", view, np.frombuffer(data, np.uint8), stream, blocking)

    def download(self, view: View, stream: int = 0) -> bytes:
        return bytes(self._call("download", view, stream).tobytes())

    def stop_trace(self, number: int) -> Trace:
        return Trace.from_json(self._call("stop_trace", number))

    def _call(self, name: str, *arguments: Any) -> Any:
        freed, self._freed = self._freed, []
        answer = self._ask(self._number, "do", [name, *arguments], {"freed": freed})
        if "refused" in answer:
            kind, _, text = str(answer["refused"]).partition(": ")
            raise ERRORS.get(kind, RuntimeError)(text)
        return answer["value"]
