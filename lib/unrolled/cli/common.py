"""What all commands share."""

from __future__ import annotations

import argparse
from typing import TypeAlias

Subparsers: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"
"""What an `add(subparsers)` function adds its parsers to."""


class CommandError(Exception):
    """A command cannot do its work. The message is one line: what is wrong, and what to do about it."""
