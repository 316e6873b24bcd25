"""A download that goes on where it broke off: the downloader that pooch is given.

What has come lies in NAME.part until it is whole. Beside it NAME.part.from keeps the address and the server's mark of
that version (ETag or Last-Modified), so that the rest is asked for with Range and If-Range (RFC 9110, 13.1.5 and 14.2):
a server whose file has changed answers 200 and sends all of it, one that knows no ranges too.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ATTEMPTS = 3  # at one address, as long as each of them brings something
TIMEOUT = (10, 30)  # seconds to connect, and between two pieces
_CHUNK = 1 << 16


class BrokenOffError(Exception):
    """The server stopped before the end. What came is kept."""


class CannotKeepError(Exception):
    """This machine cannot keep the file: a full disk, a folder that may not be written."""


class Resuming:
    """pooch's downloader protocol: called as (url, output_file, pooch)."""

    def __init__(self, part: Path, progress: bool) -> None:
        self._part = part
        self._origin = part.with_name(part.name + ".from")
        self._progress = progress

    def __call__(self, url: str, output_file: str, pooch: Any) -> None:
        """Fetch `url` into `output_file`. Raises BrokenOffError, CannotKeepError, requests' and urllib3's errors."""
        for attempt in range(1, ATTEMPTS + 1):
            before = self._held()
            try:
                self._receive(url)
                break
            except BrokenOffError:
                if attempt == ATTEMPTS or self._held() == before:
                    raise
        os.replace(self._part, output_file)
        self._origin.unlink(missing_ok=True)

    def _receive(self, url: str) -> None:
        import requests
        import urllib3

        start, mark = self._kept(url)
        headers = {"Accept-Encoding": "identity"}  # the checksum is that of the bytes as they lie on the server
        if start:
            headers |= {"Range": f"bytes={start}-", "If-Range": mark}
        with requests.get(url, headers=headers, stream=True, timeout=TIMEOUT) as response:
            if response.status_code == requests.codes.requested_range_not_satisfiable:
                self._forget()
                raise BrokenOffError("its file is shorter than what had come; started over")
            response.raise_for_status()
            goes_on = response.headers.get("Content-Range", "").startswith(f"bytes {start}-")
            if response.status_code != requests.codes.partial_content or not goes_on:
                start = 0
                self._remember(url, response.headers)
            length = response.headers.get("Content-Length")
            total = start + int(length) if length and length.isdigit() else None
            try:
                self._write(response.raw, start, total)
            except urllib3.exceptions.HTTPError as error:
                raise BrokenOffError(self._how_far(total)) from error
        if total is not None and self._held() != total:
            raise BrokenOffError(self._how_far(total))

    def _write(self, stream: Any, start: int, total: int | None) -> None:
        from tqdm.auto import tqdm

        name = self._part.name.removesuffix(".part")
        bar = tqdm(total=total, initial=start, desc=name, unit="B", unit_scale=True, disable=not self._progress)
        with bar, self._on_disk(), self._part.open("ab" if start else "wb") as file:
            for chunk in stream.stream(_CHUNK, decode_content=False):
                file.write(chunk)
                bar.update(len(chunk))

    @contextlib.contextmanager
    def _on_disk(self) -> Iterator[None]:
        """An error of the file system becomes CannotKeepError, and the space is given back."""
        try:
            yield
        except OSError as error:
            with contextlib.suppress(OSError):
                self._forget()
            raise CannotKeepError(error.strerror or str(error)) from error

    def _how_far(self, total: int | None) -> str:
        return f"broke off after {self._held():,} {f'of {total:,} ' if total else ''}bytes"

    def _held(self) -> int:
        return self._part.stat().st_size if self._part.is_file() else 0

    def _kept(self, url: str) -> tuple[int, str]:
        """How many bytes of this address are here, and the mark they came with; (0, "") to start over."""
        try:
            address, mark = self._origin.read_text(encoding="utf-8").split("\n")
        except (OSError, ValueError):
            return 0, ""
        return (self._held(), mark) if address == url and mark else (0, "")

    def _remember(self, url: str, headers: Any) -> None:
        etag = headers.get("ETag", "")
        mark = etag if etag and not etag.startswith("W/") else headers.get("Last-Modified", "")
        with self._on_disk():
            self._part.write_bytes(b"")
            self._origin.write_text(f"{url}\n{mark}", encoding="utf-8")

    def _forget(self) -> None:
        self._part.unlink(missing_ok=True)
        self._origin.unlink(missing_ok=True)
