"""The simulated GPU, seen from a worker: a machine of the judge's, reached through the conversation with the judge."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from unrolled.simgpu.command import CommandError, Operand, OutOfMemoryError, Plain, View
from unrolled.simgpu.profiles import PROFILES
from unrolled.simgpu.trace import Trace

Ask = Callable[[int, str, Sequence[Any], Mapping[str, Any]], Mapping[str, Any]]
ERRORS: Mapping[str, type[Exception]] = {
    error.__name__: error
    for error in (CommandError, OutOfMemoryError, ValueError, TypeError, IndexError, ZeroDivisionError)
}
"""What a machine raises. Anything else becomes a RuntimeError."""


class RemoteMachine:
    """`simgpu.command.Machine`: each command is a question to the judge about the object with this number."""

    def __init__(self, ask: Ask, number: int, profile: str) -> None:
        self.profile = PROFILES[profile]
        self._ask, self._number = ask, number
        self._freed: list[int] = []

    def allocate(self, nbytes: int) -> int:
        return int(self._do("allocate", nbytes))

    def free(self, buffer: int) -> None:
        """Comes from finalizers, at any time: it is told with the next command."""
        self._freed.append(buffer)

    def launch(
        self,
        op: str,
        inputs: Sequence[Operand],
        outputs: Sequence[View],
        options: Mapping[str, Plain] | None = None,
        stream: int = 0,
    ) -> None:
        operands = [[x.real, x.imag] if isinstance(x, complex) else x for x in inputs]
        self._do("launch", op, operands, list(outputs), dict(options or {}), stream)

    def upload(self, view: View, data: bytes, stream: int = 0, blocking: bool = True) -> None:
        self._do("upload", view, np.frombuffer(data, np.uint8), stream, blocking)

    def download(self, view: View, stream: int = 0) -> bytes:
        return bytes(self._do("download", view, stream).tobytes())

    def synchronize(self, stream: int | None = None) -> None:
        self._do("synchronize", stream)

    def record(self, stream: int = 0) -> int:
        return int(self._do("record", stream))

    def wait(self, event: int, stream: int | None) -> None:
        self._do("wait", event, stream)

    def elapsed(self, first: int, last: int) -> float:
        return float(self._do("elapsed", first, last))

    def clock(self) -> float:
        return float(self._do("clock"))

    def start_trace(self) -> int:
        return int(self._do("start_trace"))

    def stop_trace(self, number: int) -> Trace:
        return Trace.from_json(self._do("stop_trace", number))

    def memory(self) -> dict[str, int]:
        return dict(self._do("memory"))

    def reset_peak(self) -> None:
        self._do("reset_peak")

    def free_all(self) -> None:
        self._do("free_all")

    def _do(self, command: str, *arguments: Any) -> Any:
        freed, self._freed = self._freed, []
        answer = self._ask(self._number, "do", [command, *arguments], {"freed": freed})
        if "refused" in answer:
            kind, _, text = str(answer["refused"]).partition(": ")
            raise ERRORS.get(kind, RuntimeError)(text)
        return answer["value"]
