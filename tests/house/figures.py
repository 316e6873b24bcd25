"""The numbers with units that stand in the texts of the course, and the page that says where each is from."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/figures.md"
NUMBER = r"\d[\d,]*(?:\.\d+)?"
TIMES = r"ns|µs|us|ms|s|seconds?|min|minutes?|h|hours?|days?"
SIZES = r"bytes|[kMGT]?B(?:/s)?|[GM]Hz|W|[MGT]?flops?(?:/s)?"
FIGURE = re.compile(
    rf"(?<![\w.,^])(?:{NUMBER} (?:to|and|or|of) )?{NUMBER}(?: (?:{TIMES})| ?(?:{SIZES}|times|%|per cent))(?!\w)"
)
OWN_MINUTES = re.compile(r"(?:(?:\*\*(?:Core|More)\*\*|Lesson \d+), a|\bA)bout \d+ minutes")
MADE = {"docs/measurements.md", "docs/teaching.md", "docs/figures.md"}
"""Pages that are made of records, that a test types and compares, and the page of figures itself."""
WHY = re.compile(r"<!-- why: (.+?) -->")
"""Stands after a sentence of a lesson that says why something is fast or slow."""
LADDER = re.compile(r"(?s)<!-- the finished ladder: .*?<!-- the end of the ladder -->")
"""What the build makes of records, in a page that people write otherwise."""


def texts() -> dict[str, str]:
    """Return the prose of the course by name: "03" for a lesson with its variants, else the page's path."""
    found: dict[str, str] = {}
    for file in sorted([*ROOT.glob("lessons/*.py"), *ROOT.glob("lessons/variants/*.py")]):
        cells = file.read_text(encoding="utf-8").split("# %%")
        prose = [re.sub(r"(?m)^# ?", "", cell) for cell in cells if cell.startswith(" [markdown]")]
        found[file.stem[:2]] = found.get(file.stem[:2], "") + "\n\n".join(prose)
    for file in [ROOT / "README.md", *sorted(ROOT.glob("docs/*.md")), *sorted(ROOT.glob("site/**/*.md"))]:
        name = file.relative_to(ROOT).as_posix()
        if name not in MADE:
            found[name] = LADDER.sub("", file.read_text(encoding="utf-8"))
    return found


def figures_in(text: str) -> Iterator[str]:
    """Yield each number with a unit: not in code, and not the minutes that a lesson says it takes."""
    text = re.sub(r"(?ms)^ *```.*?^ *```", "", text)
    text = OWN_MINUTES.sub("", " ".join(text.split()))
    text = re.sub(r"`[^`]*`", "", text)
    for found in FIGURE.finditer(text):
        yield found[0]


def known() -> dict[str, dict[str, str]]:
    """Return, for each name of a text, the figures that the page tells, with what backs each."""
    found: dict[str, dict[str, str]] = {}
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|") and len(cells) == 3 and cells[0].strip("-") not in ("", "figure"):
            for place in cells[2].split(", "):
                found.setdefault(place, {}).update(dict.fromkeys(cells[0].split("; "), cells[1]))
    return found


def whys() -> dict[tuple[str, str], list[str]]:
    """Return what stands before each marker in its paragraph, from the last one on, by (lesson, name of the marker)."""
    found: dict[tuple[str, str], list[str]] = {}
    lessons = {place: text for place, text in texts().items() if place.isdigit()}
    for place, text in lessons.items():
        for paragraph in text.split("\n\n"):
            parts = WHY.split(" ".join(paragraph.split()))
            for sentences, name in zip(parts[::2], parts[1::2], strict=False):
                found.setdefault((place, name), []).append(sentences)
    return found


def borne_out() -> dict[tuple[str, str], str]:
    """Return what bears each such sentence out, as the page tells it: "count: …", "record: NAME, …"."""
    found: dict[tuple[str, str], str] = {}
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|") and len(cells) == 4 and cells[0].strip("-") not in ("", "lesson"):
            found[cells[0], cells[1]] = cells[3]
    return found
