"""Each figure of a record meets the aim that stands beside it, or a line of benchmarks/aims.toml says why not."""

import pytest


@pytest.fixture
def aims(program):
    return program("aims")


@pytest.fixture
def measurements(program):
    return program("measurements")


def test_each_recorded_figure_meets_its_aim_or_has_a_reason(aims, measurements):
    missed = {
        (name, row["name"], aim.figure)
        for name, record in measurements.records().items()
        for row, aim in aims.missed(record["rows"])
    }
    assert missed - {*aims.FALLS_SHORT} == set(), "say in benchmarks/aims.toml why"
    assert {*aims.FALLS_SHORT} - missed == set(), "is met, or gone: take the line out of benchmarks/aims.toml"


def test_each_aim_of_a_record_is_understood(aims, measurements):
    for name, record in measurements.records().items():
        for row in record["rows"]:
            keys = [key for key in row if key.startswith(("at_most", "at_least")) and row[key] is not None]
            assert len(list(aims.aims(row))) == len(keys), f"{name}, {row['name']}: {keys}"


def test_an_aim_bounds_its_figure_on_its_side(aims):
    row = {"ours_s": 2.0, "ratio": 0.4, "at_most": 0.4, "at_most_s": 1.0, "accuracy": 0.98, "at_least": 0.98}
    assert [(aim.figure, aim.side, aim.met(row[aim.figure])) for aim in aims.aims(row)] == [
        ("ratio", "at most", True),
        ("ours_s", "at most", False),
        ("accuracy", "at least", True),
    ]
    assert aims.outcome(row) == "missed"
    assert aims.outcome(row | {"ours_s": 1.0}) == "met"
    assert aims.outcome({"ours_s": 1.0, "at_most": None}) == ""


def test_the_page_says_which_rows_miss_their_aim_and_why(aims, measurements, monkeypatch):
    monkeypatch.setattr(aims, "FALLS_SHORT", {("x", "a", "ratio"): "it copies"})
    rows = [{"name": "a", "ratio": 0.9, "at_most": 0.7}, {"name": "b", "ratio": 0.5, "at_most": 0.7}]
    lines = [*measurements.tables(rows), *measurements.shortfalls("x", rows), *measurements.shortfalls("y", rows)]
    assert {"| a | 0.9 | 0.7 | missed |", "| b | 0.5 | 0.7 | met |"} <= {*lines}
    assert [line for line in lines if line.startswith("- ")] == [
        "- Missed: a, ratio 0.9, at most 0.7: it copies.",
        "- Missed: a, ratio 0.9, at most 0.7: no reason is known.",
    ]
