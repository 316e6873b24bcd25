"""Where hidden inputs come from: chance, or in an instructor's tree a private seed, so that a regrade repeats them.

The private seed is `grader/private_seed`: git-ignored, readable by its owner alone, in no learner's tree. What a
submission is judged with follows from it and from the submission, by a keyed hash. So the same file meets the same
inputs again, another one meets others, and who knows the inputs of one learns nothing of the next.
"""

from __future__ import annotations

import hmac
import os
import secrets
from pathlib import Path

from unrolled.cli import CommandError

FILE = "grader/private_seed"
BITS = 63


class SeedError(CommandError):
    """The private seed cannot be used: why not."""


def write(root: Path) -> Path:
    """Draw a private seed for the course in `root`, and return its file. Raises FileExistsError if there is one."""
    return draw(root / FILE)


def draw(file: Path) -> Path:
    """Write 32 random bytes, in hexadecimal, for the owner alone to a new file; return it. Raises FileExistsError."""
    file.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as stream:
        stream.write(secrets.token_hex(32) + "\n")
    return file


def seed_for(root: Path, *submission: str) -> int:
    """Return the seed for this submission (student, lesson, what it holds), a number of 63 bits.

    It is drawn by chance where there is no private seed. Raises SeedError if there is one that cannot be read, or that
    is too short to be secret.
    """
    try:
        private = (root / FILE).read_bytes().strip()
    except FileNotFoundError:
        return secrets.randbits(BITS)
    except OSError as error:
        raise SeedError(f"{root / FILE} cannot be read: {error.strerror}") from error
    if len(private) < 32:
        raise SeedError(f"{root / FILE} holds {len(private)} characters, expected 64: it would not be secret")
    message = repr(submission).encode("utf-8", "backslashreplace")
    return int.from_bytes(hmac.digest(private, message, "sha256")[:8], "big") >> (64 - BITS)
