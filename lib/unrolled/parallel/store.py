"""A host's side of ranks in processes: who is there, short notes from rank to rank, and the first failure.

One process holds a `StoreServer`; every rank has a `Store`. Notes are JSON over TCP, a connection each: they are few.
Besides, a rank keeps one connection open and says again and again that it lives. Where that ends without a goodbye, or
falls silent, the rank has failed, and all others are told at once. As with other launchers, the network is trusted.
"""

from __future__ import annotations

import contextlib
import json
import select
import socket
import socketserver
import threading
import time
from collections.abc import Iterator
from typing import Any

from unrolled.parallel import errors
from unrolled.parallel.errors import ParallelError, RankError

HEARTBEAT_SECONDS = 0.25  # between two signs of life
START_SECONDS = 20.0  # that ranks have to come, at least, however short they may wait for each other later
ANSWER_SECONDS = 4.0  # within which the server answers, or is frozen
QUIET_READS = 4
"""Reads without a sign of life, one after the other, after which a rank has failed. One is not enough: where all have
been frozen, as the grader does with a box, the time of a read is over when they go on."""
FOUND_BY = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
"""Environment variables by which ranks find the server, and who they are, where no MPI has started them."""
GREETING, GOODBYE = "unrolled.parallel", b"bye\n"

Failure = dict[str, str]  # {"kind": an error's class in `errors`, "text"}


def error_of(failure: Failure) -> ParallelError:
    """Return a failure as the error that it names."""
    kind: type[ParallelError] = getattr(errors, failure["kind"], RankError)
    return kind(failure["text"])


class StoreServer(socketserver.ThreadingTCPServer):
    """Holds notes and failure of `size` ranks, at (host, port); port 0 takes a free one, see `server_address`.

    A rank that is silent for `timeout` seconds has failed, and so has one that does not come within as long, or within
    `START_SECONDS` if that is longer. Raises ParallelError where the address is in use.
    """

    allow_reuse_address = True
    request_queue_size = 128
    daemon_threads = True
    block_on_close = False

    def __init__(self, host: str, port: int, size: int, timeout: float) -> None:
        self.size, self.silence = size, timeout
        self.changed = threading.Condition()
        self.notes: dict[str, Any] = {}
        self.here: set[int] = set()
        self.left: set[int] = set()
        self.failure: Failure | None = None
        self.closed = False
        # Without it, the thread that runs first decides who died.
        self._ends = select.epoll() if hasattr(select, "epoll") else None
        self._ranks: dict[int, int] = {}  # by the number of their line's file
        try:
            super().__init__((host, port), _Visitor)
        except OSError as error:
            raise ParallelError(
                f"rank 0 cannot listen at port {port}: {error.strerror}; set MASTER_PORT to a free port, everywhere"
            ) from error
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()
        threading.Thread(target=self._await_all, args=(max(timeout, START_SECONDS),), daemon=True).start()

    @contextlib.contextmanager
    def changing(self) -> Iterator[None]:
        """Change what is known of the ranks, and tell all who wait."""
        with self.changed:
            yield
            self.changed.notify_all()

    def fail(self, failure: Failure) -> None:
        """Keep the first failure, and tell all who wait."""
        with self.changing():
            self.failure = self.failure or failure

    def _await_all(self, seconds: float) -> None:
        """Fail unless all ranks are here after so many seconds."""
        with self.changed:
            if self.changed.wait_for(lambda: len(self.here) == self.size or self.failure or self.closed, seconds):
                return
            absent = sorted(set(range(self.size)) - self.here)
        who = f"rank {absent[0]} is" if len(absent) == 1 else f"ranks {', '.join(map(str, absent))} are"
        self.fail({"kind": "RankError", "text": f"{who} not there after {seconds:g} s"})

    def wait_for_goodbyes(self, seconds: float) -> None:
        """Wait until all ranks have left, at most so long."""
        with self.changed:
            self.changed.wait_for(lambda: len(self.left) == self.size or self.failure, seconds)

    def close(self) -> None:
        """End: whoever is still connected sees it."""
        with self.changing():
            self.closed = True
        self.shutdown()
        self.server_close()
        if self._ends is not None:
            self._ends.close()

    def watch(self, line: socket.socket, rank: int) -> None:
        """Keep the order in which the ranks' lines end, whichever thread gets to know it first."""
        if self._ends is not None:
            self._ranks[line.fileno()] = rank
            self._ends.register(line, select.EPOLLRDHUP)

    def first_to_end(self, rank: int) -> int:
        """Return the rank whose line ended first, of this one and those whose end nobody has heard of yet.

        Where a rank has died, MPICH's mpiexec kills the others within a millisecond.
        """
        ended = [] if self._ends is None else [self._ranks[file] for file, _ in self._ends.poll(0)]
        return next((each for each in ended if each not in self.left), rank)

    def put(self, key: str, value: Any) -> None:
        with self.changing():
            self.notes[key] = value

    def get(self, key: str, seconds: float) -> dict[str, Any]:
        with self.changed:
            self.changed.wait_for(lambda: self.notes.get(key) is not None or self.failure, seconds)
            value = self.notes.get(key)
            return {"failure": self.failure} if value is None else {"value": value}


class _Visitor(socketserver.StreamRequestHandler):
    """One connection: a note put or asked for, or a rank that stays."""

    server: StoreServer

    def handle(self) -> None:
        server = self.server
        with contextlib.suppress(OSError, ValueError):
            match json.loads(self.rfile.readline()):
                case {"rank": rank, "size": size}:
                    self._attend(int(rank), int(size))
                case {"put": key, "value": value}:
                    server.put(key, value)
                    self._answer({})
                case {"fail": failure}:
                    server.fail(failure)
                    self._answer({})
                case {"get": key, "seconds": seconds}:
                    self._answer(server.get(key, seconds))

    def _answer(self, reply: Any) -> None:
        self.wfile.write(_line(reply))

    def _attend(self, rank: int, size: int) -> None:
        """Hear a rank's signs of life until it says goodbye; tell it of the first failure."""
        server = self.server
        wrong = self._wrong(rank, size)
        self._answer({"greeting": GREETING, "wrong": wrong})
        if wrong:
            server.fail({"kind": "ParallelError", "text": wrong})
            return
        server.watch(self.request, rank)
        threading.Thread(target=self._send_failure, daemon=True).start()
        if text := self._ended(rank):
            server.fail({"kind": "RankError", "text": text})
            return
        with server.changing():
            server.left.add(rank)

    def _wrong(self, rank: int, size: int) -> str:
        """What is wrong with a new rank; "" if nothing is."""
        with self.server.changing():
            if size != self.server.size:
                return f"this group has {self.server.size} ranks, rank {rank} was told {size}"
            if rank in self.server.here:
                return f"two processes say that they are rank {rank}"
            self.server.here.add(rank)
        return ""

    def _ended(self, rank: int) -> str:
        """Wait for a rank's end and return how it came; "" if it said goodbye."""
        self.request.settimeout(self.server.silence / QUIET_READS)
        quiet, last = 0, b""
        while quiet < QUIET_READS:
            try:
                received = self.request.recv(4096)
            except TimeoutError:
                quiet += 1
                continue
            except OSError:
                received = b""
            quiet, last = 0, (last + received)[-len(GOODBYE) :]
            if last == GOODBYE:
                return ""
            if not received:
                return f"rank {self.server.first_to_end(rank)} died"
        return f"rank {rank} has given no sign of life for {self.server.silence:g} s"

    def _send_failure(self) -> None:
        """Wait for the first failure, and send it."""
        with self.server.changed:
            self.server.changed.wait_for(lambda: self.server.failure or self.server.closed)
        with contextlib.suppress(OSError, ValueError):
            if self.server.failure:
                self._answer(self.server.failure)


class Store:
    """A rank's door to the server at (host, port). It is asked for up to `timeout` seconds, in case it starts later.

    Raises RankError where nobody answers, ParallelError where it is no server of ours or has other ranks in mind.
    """

    def __init__(self, host: str, port: int, rank: int, size: int, timeout: float) -> None:
        self.host, self.port, self.rank, self.size, self.timeout = host, port, rank, size, timeout
        self._line = self._call(timeout)
        self._line.sendall(_line({"rank": rank, "size": size}))
        try:
            reply = json.loads(self._line.makefile("rb").readline())
        except (OSError, ValueError):
            reply = {}
        if reply.get("greeting") != GREETING:
            raise ParallelError(f"something else answers at {host}:{port}; set MASTER_PORT to a free port, everywhere")
        if reply["wrong"]:
            raise ParallelError(str(reply["wrong"]))

    def put(self, key: str, value: Any) -> None:
        """Leave a note (what JSON can hold); None takes it back."""
        self._ask({"put": key, "value": value})

    def get(self, key: str, seconds: float | None = None) -> Any:
        """Return a note; None if nobody leaves it within `seconds` (default: the timeout). Raises the first failure."""
        seconds = self.timeout if seconds is None else seconds
        reply = self._ask({"get": key, "seconds": seconds}, seconds)
        if reply.get("failure"):
            raise error_of(reply["failure"])
        return reply.get("value")

    def fail(self, failure: Failure) -> None:
        """Tell all ranks of a failure."""
        with contextlib.suppress(ParallelError):
            self._ask({"fail": failure})

    def heartbeat(self) -> Failure | None:
        """Give a sign of life, wait `HEARTBEAT_SECONDS`, and return the first failure if there is one by then."""
        try:
            self._line.sendall(b"beat\n")
            if not select.select([self._line], [], [], HEARTBEAT_SECONDS)[0]:
                return None
            failure: Failure = json.loads(self._line.makefile("rb").readline())
        except (OSError, ValueError):
            return {"kind": "RankError", "text": f"the process that listens at {self.host}:{self.port} is gone"}
        return failure

    def leave(self) -> None:
        """Say goodbye."""
        with contextlib.suppress(OSError):
            self._line.sendall(GOODBYE)
            self._line.close()

    def _ask(self, request: Any, seconds: float = 0.0) -> dict[str, Any]:
        """Return the server's answer to a request that it may take so many seconds for."""
        with self._call(ANSWER_SECONDS) as line:
            try:
                line.settimeout(seconds + ANSWER_SECONDS)
                line.sendall(_line(request))
                reply: dict[str, Any] = json.loads(line.makefile("rb").readline())
            except TimeoutError:
                raise RankError(f"the process that listens at {self.host}:{self.port} does not answer") from None
            except (OSError, ValueError):
                raise RankError(f"the process that listens at {self.host}:{self.port} is gone") from None
        return reply

    def _call(self, seconds: float) -> socket.socket:
        end = time.monotonic() + seconds
        while True:
            try:
                line = socket.create_connection((self.host, self.port), timeout=max(0.1, end - time.monotonic()))
            except OSError as error:
                if time.monotonic() > end:
                    raise RankError(
                        f"rank 0 does not answer at {self.host}:{self.port} within {seconds:g} s ({error})"
                    ) from None
                time.sleep(0.05)
            else:
                return line


def _line(words: Any) -> bytes:
    return json.dumps(words).encode() + b"\n"
