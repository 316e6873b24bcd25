"""What stands for a student's function on the judge's side."""

from __future__ import annotations

import inspect
import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from unrolled import device
from unrolled.checks.gpu import connected
from unrolled.checks.run import ReportedError
from unrolled_grader.box import gpu
from unrolled_grader.box.gpu import SimulatedGPU
from unrolled_grader.box.transport import Worker, WorkerDiedError

ENDED = "the process ended ({}): exit, a crash, or too much memory?"
GPU_PATIENCE = 3
"""How many times as long a case on the simulated GPU may take here: each command goes through three processes."""
NAME_LIMIT = PARAMETERS_LIMIT = 100
"""Characters of a parameter's name, and how many parameters a function may have."""


class StandIn:
    """Stands for a function in the worker: it is called with the same parameters, and raises what that raises."""

    def __init__(self, worker: Worker, found: Mapping[str, Any], simulated: Callable[[], SimulatedGPU]) -> None:
        self._worker = worker
        self._deadline = 0.0
        self._simulated = simulated
        self._machine: gpu.Guarded | None = None
        if (signature := signature_of(found.get("parameters"))) is not None:
            self.__signature__ = signature

    def __call__(self, *positional: Any, **named: Any) -> Any:
        try:
            return self._worker.call(positional, named, max(0.01, self._deadline - time.monotonic()))
        except WorkerDiedError as death:
            raise ReportedError([ENDED.format(death)]) from None

    @contextmanager
    def limiter(self, seconds: float) -> Iterator[None]:
        """Let the calls within the block take so many seconds together; three times as many on the simulated GPU."""
        self._deadline = time.monotonic() + seconds * (1 if self._machine is None else GPU_PATIENCE)
        if self._machine is not None:
            self._machine.deadline = self._deadline
        yield
        if self._machine is not None:
            self._machine.deadline = math.inf

    @contextmanager
    def simulated(self) -> Iterator[device.Module]:
        """Give the simulated GPU for one case: the worker's function and this process work on the same machine."""
        self._machine = self._simulated().fresh()
        try:
            with self._worker.using(self._machine), connected(self._machine) as module:  # type: ignore[arg-type]
                yield module
        finally:
            self._machine.over = True
            self._machine = None

    def ported(self, function: Any) -> Any:
        """Return the function as it runs on the worker's real GPU."""

        def on_gpu(*positional: Any, **named: Any) -> Any:
            try:
                with self._worker.ported():
                    return self(*positional, **named)
            except WorkerDiedError as death:
                raise ReportedError([ENDED.format(death)]) from None

        return on_gpu


def signature_of(parameters: Any) -> inspect.Signature | None:
    """Return the signature that a worker describes; None if it describes none."""
    if not isinstance(parameters, list) or len(parameters) > PARAMETERS_LIMIT:
        return None

    def parameter(name: Any, kind: Any, optional: Any) -> inspect.Parameter:
        if not (isinstance(name, str) and 0 < len(name) <= NAME_LIMIT and isinstance(kind, int)):
            raise ValueError("no parameter")
        default = None if optional else inspect.Parameter.empty
        return inspect.Parameter(name, inspect._ParameterKind(kind), default=default)

    try:
        return inspect.Signature([parameter(*described) for described in parameters])
    except (TypeError, ValueError):
        return None
