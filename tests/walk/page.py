"""A page that is a script: its commands are run in order, and what they print is what the page shows.

```console                a line with "$ " is a command, a backslash goes on with it; what it prints is below
                          ("console 8": of paragraphs that are longer, 8 lines)
<!-- type: FILE -->       the block below is typed into FILE; a table of TOML takes the place of the one that is there
<!-- add: FILE -->         the block below is added to FILE, at its end; or ", above: LINE" that begins with this
<!-- meanwhile: NAME -->  what people do between two commands
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

STEP = re.compile(
    r"^```console(?: (?P<limit>\d+))?\n(?P<console>.*?)^```$"
    r"|^<!-- meanwhile: (?P<meanwhile>\w+) -->$"
    r"|^<!-- type: (?P<file>\S+) -->\n+```\w+\n(?P<typed>.*?)^```$"
    r"|^<!-- add: (?P<into>[^\s,]+)(?:, above: (?P<above>.+?))? -->\n+```\w+\n(?P<added>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
LIMIT = 40
HOME = "/home/you"


@dataclass
class Walk:
    """Someone at a terminal whose home is `home`. Runs a page from its beginning."""

    home: Path
    meanwhile: Mapping[str, Callable[[Walk], None]]
    folder: Path = Path()
    failed: list[str] = field(default_factory=list)
    """The commands that ended with another code than 0."""

    def run(self, page: str) -> Iterator[tuple[str, str]]:
        """Each console block as the page has it, and as it comes out."""
        for step in STEP.finditer(page):
            if step["meanwhile"]:
                self.meanwhile[step["meanwhile"]](self)
            elif step["into"]:
                file = self.folder / step["into"]
                file.write_text(added(file.read_text(encoding="utf-8"), step["added"], step["above"]), encoding="utf-8")
            elif step["file"]:
                file = self.folder / step["file"]
                file.write_text(typed(file.read_text(encoding="utf-8"), step["typed"]), encoding="utf-8")
            else:
                limit = int(step["limit"] or LIMIT)
                parts = [f"$ {command}\n{shown(self.command(command), limit)}" for command in commands(step["console"])]
                yield step[0], step[0].replace(step["console"], "".join(parts))

    def command(self, command: str) -> str:
        """What a command prints. `cd` holds for those that follow."""
        if command.startswith("cd "):
            self.folder = (self.folder / command[3:]).resolve()
            return ""
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=self.folder,
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            timeout=3600,
        )
        if done.returncode:
            self.failed.append(command)
        return done.stdout.replace(str(self.home), HOME)

    def _environment(self) -> dict[str, str]:
        """As after `. .venv/bin/activate` in the folder's own checkout."""
        scripts = Path(sys.executable).parent
        own = [str(self.folder / name) for name in ("lib", "grader")]
        return {
            **{name: value for name, value in os.environ.items() if not name.startswith("UNROLLED_")},
            **{"HOME": str(self.home), "TZ": "UTC", "LC_ALL": "C.UTF-8"},
            **{"PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": os.pathsep.join(own)},
        }


def commands(console: str) -> list[str]:
    """The commands of a console block."""
    return re.findall(r"^\$ (.*(?:(?<=\\)\n.*)*)$", console, re.MULTILINE)


def shown(printed: str, limit: int) -> str:
    """What was printed as the page shows it: submissions in one order, long paragraphs without their middle."""
    paragraphs = [in_order(text.split("\n")) for text in printed.strip("\n").split("\n\n")]
    text = "\n\n".join("\n".join(shortened(lines, limit)) for lines in paragraphs)
    return "".join(f"{line.rstrip()}\n" for line in text.split("\n")) if text else ""


def in_order(lines: list[str]) -> list[str]:
    """Lines such as "[3/30] ada, …" come as cores get done: sorted here, and counted anew."""
    count = re.compile(r"\[\d+(?=/\d+\] )")
    running = [line for line in lines if count.match(line)]
    others = [line for line in lines if not count.match(line)]
    ordered = sorted(running, key=lambda line: line.partition("] ")[2])
    return [count.sub(f"[{number}", line) for number, line in enumerate(ordered, 1)] + others


def shortened(lines: list[str], limit: int) -> list[str]:
    """The first and the last lines, where there are more than `limit`."""
    return [*lines[: limit - 2], "…", lines[-1]] if len(lines) > limit else lines


def same(text: str) -> str:
    """A block without what differs from run to run: seconds, ratios, moments, pseudonyms, ids."""
    ratios, tests = r"[\d.,]+x faster than the baseline[^;]*", r"\d+ deselected in [\d.]+s"
    seconds, moments, names = r"[\d.]+(?= s\b)", r"\d{4}-\d\d-\d\dT[\d:.+]+", r"\bs-[a-z2-7]{10}\b|\b[0-9a-f]{16}\b"
    return re.sub("|".join([ratios, tests, seconds, moments, names]), "?", text)


def added(text: str, lines: str, above: str | None) -> str:
    """A file's text with `lines` at its end, or above the cell with a line: two empty lines between them."""
    if above is None:
        return f"{text.rstrip()}\n\n\n{lines}"
    before, line, after = text.partition(f"\n{above}\n")
    assert line, f"there is no line {above!r}"
    head, cell, rest = before.rpartition("\n# %%")
    return f"{head.rstrip()}\n\n\n{lines}{cell}{rest}{line}{after}"


def typed(text: str, lines: str) -> str:
    """A file's text after `lines` were typed into it: each table takes the place of the one that is there."""
    for table in re.split(r"\n(?=\[)", lines.rstrip("\n")):
        head = table.partition("\n")[0]
        there = re.compile(rf"^{re.escape(head)}\n(?:[^\[#\n].*\n)*", re.MULTILINE)
        text, found = there.subn(lambda _, table=table: f"{table.rstrip()}\n", text, count=1)  # type: ignore[misc]
        text = text if found else f"{text.rstrip()}\n\n{table.rstrip()}\n"
    return text
