"""What can go wrong on the way from a mirror to an array."""

from __future__ import annotations


class DownloadError(OSError):
    """No mirror gave the file, or it cannot be kept. The message says what each one answered and what works offline."""


class FileFormatError(ValueError):
    """A file is not what its name promises. The message names the file, what was found and what was expected."""
