"""Which line of a program called the simulated GPU."""

from __future__ import annotations

import sys

MACHINE = "unrolled.simgpu.machine"


def caller(otherwise: str) -> tuple[str, str | None]:
    """Return what of this package or of `device` the program called ("to_host", "__float__"), and file:line of that.

    The name is `otherwise` where the program calls the machine itself.
    """
    frame, name = sys._getframe(1), otherwise
    while frame.f_back is not None:
        module = str(frame.f_globals.get("__name__", ""))
        if not module.startswith(("unrolled.simgpu", "unrolled.device")) and module != "contextlib":
            break
        if module not in (MACHINE, "contextlib"):
            name = frame.f_code.co_name
        frame = frame.f_back
    return name, f"{frame.f_code.co_filename}:{frame.f_lineno}"
