"""A local server of small files that can break off, answer 404, ignore ranges or change its files."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Served:
    """What the server holds, how it misbehaves, and what it was asked and sent."""

    files: dict[str, bytes]
    break_after: list[int] = field(default_factory=list)  # bytes sent in the next answers, then the line is cut
    status: int = 200  # of all answers, instead of files
    ranges: bool = True
    marks: bool = True  # ETag
    address: str = ""
    asked: list[tuple[str, str | None, str | None]] = field(default_factory=list)  # path, Range, If-Range
    sent: list[int] = field(default_factory=list)


@contextmanager
def serve(files: dict[str, bytes], **how: object) -> Iterator[Served]:
    """`files` at http://127.0.0.1:PORT/, until the block ends."""
    served = Served(files, **how)  # type: ignore[arg-type]

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            name = self.path.strip("/")
            served.asked.append((name, self.headers.get("Range"), self.headers.get("If-Range")))
            if served.status != 200 or name not in served.files:
                self.send_error(served.status if served.status != 200 else 404)
                return
            self.answer(served.files[name])

        def answer(self, content: bytes) -> None:
            mark, wanted = f'"{hashlib.md5(content).hexdigest()}"', self.headers.get("Range")
            same = self.headers.get("If-Range") in (None, mark)
            start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted and served.ranges and same else 0
            if start >= len(content):
                self.send_error(416)
                return
            self.send_response(206 if start else 200)
            if start:
                self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
            if served.marks:
                self.send_header("ETag", mark)
            body = content[start:]
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if served.break_after:
                body = body[: served.break_after.pop(0)]
            served.sent.append(len(body))  # first: the client's next request has a thread of its own
            self.wfile.write(body)
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
        server.shutdown()
        server.server_close()
        thread.join()
