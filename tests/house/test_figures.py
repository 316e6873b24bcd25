"""Every number with a unit in the texts of the course has something that backs it: a line of docs/figures.md."""

import json
import re

import figures
import pytest

from unrolled import checks

TEXTS, KNOWN = figures.texts(), figures.known()
RECORD = re.compile(r"record (?P<record>\w+): (?P<row>.+), (?P<field>\w+)")


def asked(place):
    """How many times faster the checks of a lesson ask an answer to be, as its text says it."""
    lessons = (specs for lesson, specs in checks.lessons().items() if lesson.startswith(place))
    exercises = {name: spec for specs in lessons for name, spec in specs.items()}
    variants = (spec for name in exercises for spec in checks.variants().get(name, {}).values())
    return {f"{spec.speed.at_least:g} times" for spec in (*exercises.values(), *variants) if spec.speed}


@pytest.mark.parametrize("place", TEXTS)
def test_each_figure_in_a_text_is_told(place):
    backed = KNOWN.get(place, {}).keys() | (asked(place) if place.isdigit() else set())
    assert sorted(set(figures.figures_in(TEXTS[place])) - backed) == [], f"{place}: not in docs/figures.md"


@pytest.mark.parametrize("place", KNOWN)
def test_each_line_of_the_page_is_needed(place):
    assert place in TEXTS, f"docs/figures.md names {place}, which is no lesson and no page"
    assert sorted(KNOWN[place].keys() - set(figures.figures_in(TEXTS[place]))) == []


RECORDED = {(figure, backing) for found in KNOWN.values() for figure, backing in found.items() if RECORD.match(backing)}


@pytest.mark.parametrize(("figure", "backing"), sorted(RECORDED))
def test_a_figure_of_a_record_is_the_records(figure, backing):
    found = RECORD.match(backing)
    folders = (figures.ROOT / "lib/unrolled/records", figures.ROOT / "benchmarks/results")
    file = next(
        folder / f"{found['record']}.json" for folder in folders if (folder / f"{found['record']}.json").exists()
    )
    rows = {row["name"]: row for row in json.loads(file.read_text(encoding="utf-8"))["rows"]}
    number = re.search(figures.NUMBER, figure)[0].replace(",", "")
    decimals = len(number.partition(".")[2])
    assert round(float(rows[found["row"]][found["field"]]), decimals) == float(number)


def test_figures_are_found_in_prose_and_not_in_code():
    text = (
        "It took 1,432 µs, 9.9 to 12 µs, or 5 %.\n\n```sh\nsleep 30 s\n```\nLesson 03, about 95 minutes. `4 MB`, 3 x 3"
    )
    assert list(figures.figures_in(text)) == ["1,432 µs", "9.9 to 12 µs", "5 %"]
