"""Commands by hand, as the front end sends them: arrays up and down a machine."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np

from unrolled.simgpu.command import Machine, View
from unrolled.simgpu.process import Link, serve


def view_of(array: Any, buffer: int, offset: int = 0) -> View:
    return View(buffer, offset, array.shape, array.strides, array.dtype.name)


def put(machine: Machine, values: Any) -> View:
    """A device array of these values."""
    host = np.ascontiguousarray(values)
    view = view_of(host, machine.allocate(host.nbytes))
    machine.upload(view, host.tobytes())
    return view


def empty(machine: Machine, shape: tuple[int, ...], dtype: str = "float32") -> View:
    host = np.empty(shape, dtype)
    return view_of(host, machine.allocate(host.nbytes))


def get(machine: Machine, view: View) -> Any:
    return np.frombuffer(machine.download(view), view.dtype).reshape(view.shape)


@contextlib.contextmanager
def start(profile: str = "T4", memory_limit: int | None = None) -> Iterator[Link]:
    """A machine at the other end of a socket, served by a thread of this process until the block ends."""
    here, there = socket.socketpair()
    thread = threading.Thread(target=serve, args=(there, profile, memory_limit), daemon=True)
    thread.start()
    with there, here:
        yield Link(here)
        here.close()
        thread.join()
