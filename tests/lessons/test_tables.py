"""Each row of a table in a lesson tells of one thing: two tables are never put side by side."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from lessons_found import ROOT

FILES = sorted((ROOT / "lessons").rglob("*.py"))
HEAD = re.compile(r"^# \|(.+)\|\n# \|[ |:-]+\|$", re.MULTILINE)


def heads(text: str) -> Iterator[list[str]]:
    """The headings of each table in a lesson's texts, without empty ones."""
    for head in HEAD.findall(text):
        yield [name for name in map(str.strip, head.split("|")) if name]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_no_heading_stands_twice_in_a_table(file: Path) -> None:
    twice = [head for head in heads(file.read_text(encoding="utf-8")) if len(set(head)) < len(head)]
    assert twice == [], "two tables side by side, whose rows have nothing to do with each other"


def test_tables_are_found_by_their_headings() -> None:
    text = "# text\n# | a step | ms | | ms |\n# | --- | --- | --- | --- |\n# | forward | 1.32 | | |\n"
    assert list(heads(text)) == [["a step", "ms", "ms"]]
