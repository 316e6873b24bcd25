"""docs/measurements.md is made from the records, never typed."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RECORDS = sorted(
    file for folder in ("benchmarks/results", "lib/unrolled/records") for file in (ROOT / folder).glob("*.json")
)


def test_the_page_says_what_the_records_say():
    command = [sys.executable, str(ROOT / "benchmarks" / "measurements.py"), "--check"]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_the_page_names_the_lessons_that_quote_a_record(program):
    lessons = program("measurements").LESSONS
    quoted = {
        ({"model": "simgpu"}.get(name, name), file.stem[:2])
        for file in (ROOT / "lessons").glob("*.py")
        for name in re.findall(r"\brecords\.(\w+)\(\)", file.read_text(encoding="utf-8"))
    }
    assert len(quoted) > 10
    assert quoted <= {(name, lesson) for name, named in lessons.items() for lesson in named}
    assert [name for name in lessons if not (ROOT / "benchmarks" / f"{name}.py").is_file()] == []


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_a_record_says_where_it_comes_from(path):
    record = json.loads(path.read_text(encoding="utf-8"))
    assert set(record) >= {"command", "date", "commit", "machine", "versions", "rows"}
    assert path.stem in record["command"]
    names = [row["name"] for row in record["rows"]]
    assert names
    assert len(set(names)) == len(names)
