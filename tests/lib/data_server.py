"""A local server of small files that can break off, answer 404, or say nothing."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Served:
    """What the server holds, how it misbehaves, and what it was asked."""

    files: dict[str, bytes]
    break_after: list[int] = field(default_factory=list)  # bytes sent in the next answers, then the line is cut
    status: int = 200  # of all answers, instead of files
    silent: bool = False  # until the block ends
    address: str = ""
    asked: list[str] = field(default_factory=list)


@contextmanager
def serve(files: dict[str, bytes], **how: object) -> Iterator[Served]:
    """`files` at http://127.0.0.1:PORT/, until the block ends."""
    served, over = Served(files, **how), threading.Event()  # type: ignore[arg-type]

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            name = self.path.strip("/")
            served.asked.append(name)
            if served.silent:
                over.wait()
            elif served.status != 200 or name not in served.files:
                self.send_error(served.status if served.status != 200 else 404)
            else:
                self.answer(served.files[name])

        def answer(self, body: bytes) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[: served.break_after.pop(0)] if served.break_after else body)
            self.close_connection = True

        def log_message(self, format: str, *arguments: object) -> None:
            """Silent."""

    class Server(ThreadingHTTPServer):
        def handle_error(self, request: object, client_address: object) -> None:
            """Silent: a client that hangs up is what some tests are about."""

    server = Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    served.address = f"http://127.0.0.1:{server.server_port}/"
    try:
        yield served
    finally:
        over.set()
        server.shutdown()
        server.server_close()
        thread.join()
