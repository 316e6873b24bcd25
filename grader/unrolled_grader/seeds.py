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

FILE = "grader/private_seed"
BITS = 63


def write(root: Path) -> Path:
    """Draw a private seed for the course in `root`. Raises FileExistsError if it has one."""
    file = root / FILE
    file.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as stream:
        stream.write(secrets.token_hex(32) + "\n")
    return file


def seed_for(root: Path, *submission: str) -> int:
    """The seed for this submission (student, lesson, what it holds); drawn by chance where there is no private seed.

    Raises OSError if there is one that cannot be read, and ValueError if it is too short to be secret.
    """
    try:
        private = (root / FILE).read_bytes().strip()
    except FileNotFoundError:
        return secrets.randbits(BITS)
    if len(private) < 32:
        raise ValueError(f"{root / FILE} holds {len(private)} characters, expected 64: it would not be secret")
    told = repr(submission).encode("utf-8", "backslashreplace")
    return int.from_bytes(hmac.digest(private, told, "sha256")[:8], "big") >> (64 - BITS)
