"""Commands by hand, as the front end sends them: arrays up and down a machine."""

import contextlib
import socket
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np

from unrolled.simgpu.command import KernelOrder, Machine, View
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
def serving(*profile: str, **words: Any) -> Iterator[tuple[socket.socket, threading.Thread]]:
    """A socket whose other end is served by a thread of this process, which ends with the block."""
    here, there = socket.socketpair()
    here.settimeout(120)

    def run() -> None:
        with there:
            serve(there, *profile, **words)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    with here:
        yield here, thread
    thread.join(120)
    assert not thread.is_alive()


@contextlib.contextmanager
def start(*profile: str, **words: Any) -> Iterator[Link]:
    """A machine at the other end of a socket, until the block ends."""
    with serving(*profile, **words) as (connection, _):
        yield Link(connection)


HALVE = {
    "source": "def halve(x, by):\n    i = jit.grid(1)\n    if i < 12:\n        x[i // 4, i % 4] *= by\n",
    "first_line": 3,
    "constants": {"jit": {"name": "jit"}},
}


def halved(x: View, threads: tuple[int, int, int] = (32, 1, 1), **changed: Any) -> KernelOrder:
    """The order to halve an array, or to run another program on it."""
    return KernelOrder(HALVE | changed, [x, ("float32", 0.5)], (2, 1, 1), threads)
