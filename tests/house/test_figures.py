"""Every number with a unit in the texts of the course has something that backs it: a line of docs/figures.md."""

import figures
import pytest

from unrolled import checks

TEXTS, KNOWN = figures.texts(), figures.known()
WHYS, BORNE_OUT = figures.whys(), figures.borne_out()
RECORDS = {
    file.stem
    for folder in ("lib/unrolled/records", "benchmarks/results")
    for file in figures.ROOT.glob(f"{folder}/*.json")
}
NOT_KNOWN = "not looked into"


def thresholds(place):
    """How many times faster the checks of a lesson ask an answer to be, as its text says it."""
    lessons = (specs for lesson, specs in checks.lessons().items() if lesson.startswith(place))
    exercises = {name: spec for specs in lessons for name, spec in specs.items()}
    variants = (spec for name in exercises for spec in checks.variants().get(name, {}).values())
    return {f"{spec.speed.at_least:g} times" for spec in (*exercises.values(), *variants) if spec.speed}


@pytest.mark.parametrize("place", TEXTS)
def test_each_figure_in_a_text_is_told(place):
    backed = KNOWN.get(place, {}).keys() | (thresholds(place) if place.isdigit() else set())
    assert sorted(set(figures.figures_in(TEXTS[place])) - backed) == [], f"{place}: not in docs/figures.md"


@pytest.mark.parametrize("place", KNOWN)
def test_each_line_of_the_page_is_needed(place):
    assert place in TEXTS, f"docs/figures.md names {place}, which is no lesson and no page"
    assert sorted(KNOWN[place].keys() - set(figures.figures_in(TEXTS[place]))) == []


def test_figures_are_found_in_prose_and_not_in_code():
    text = (
        "It took 1,432 µs, 9.9 to 12 µs, or 5 %.\n\n```sh\nsleep 30 s\n```\nLesson 03, about 95 minutes. `4 MB`, 3 x 3"
    )
    assert list(figures.figures_in(text)) == ["1,432 µs", "9.9 to 12 µs", "5 %"]


def test_each_reason_that_a_lesson_gives_is_borne_out_once_and_each_line_is_needed():
    assert sorted(BORNE_OUT) == sorted(WHYS), "docs/figures.md, and the markers <!-- why: NAME --> of the lessons"
    assert [place for place, sentences in WHYS.items() if len(sentences) > 1] == []


@pytest.mark.parametrize(
    ("place", "by"), BORNE_OUT.items(), ids=lambda each: each if isinstance(each, str) else " ".join(each)
)
def test_what_bears_a_reason_out_is_there(place, by):
    kind, _, rest = by.partition(": ")
    assert kind in ("count", "record", "source", "cell", NOT_KNOWN), by
    assert kind != "record" or rest.split(",")[0] in RECORDS, by
    assert (kind == NOT_KNOWN) == any(NOT_KNOWN in sentences for sentences in WHYS.get(place, [])), by
