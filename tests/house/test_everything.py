"""benchmarks/everything.py joins what a machine measured with the records, row by row; nothing is measured here."""

import json
import sys
from argparse import Namespace
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
CPU = {"processor": "A", "cores": 2}
GPU = {**CPU, "gpu": "B"}


@pytest.fixture
def every(program):
    return program("everything")


def record(rows, command="taskset -c 2,3 python benchmarks/x.py --threads 1 --json a/x.json", machine=CPU):
    return {"command": command, "date": "2026-11-24T02:06:25+00:00", "machine": machine, "rows": rows}


def joined(every, known, seen, why="not in this run", failed=""):
    return every.joined("x", known, every.Seen(why, {row["name"]: row for row in seen}, failed))


STEP = {"name": "step", "peer": "P", "ours_s": 0.2, "at_most_s": 0.15, "ratio": 0.5, "at_most": 0.6, "batch": 8}


def test_all_figures_and_aims_of_a_row_stand_beside_its_record(every, capsys):
    known = record([STEP, {**STEP, "name": "other"}, {"name": "judge", "erred": 0}])
    rows = joined(every, known, [{"name": "step", "ours_s": 0.1, "ratio": 0.7}, {"name": "judge", "erred": 0}])
    assert rows[0]["numbers"].items() >= {"ours_s": [0.2, 0.1], "ratio": [0.5, 0.7], "batch": [8, None]}.items()
    every.print_figures(rows)
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert lines[:7] == [
        "",
        "x.json, 2026-11-24",
        "name figure recorded here here / recorded aim",
        "step ratio 0.5 0.7 1.4 at most 0.6: met, missed",
        "ours_s 0.2 0.1 0.5 at most 0.15: missed, met",
        "judge erred 0 0",  # nothing is divided by a recorded zero
        "1 row not measured: not in this run",
    ]


@pytest.mark.parametrize(
    ("seen", "why"),
    [
        ([], "not in this run"),
        ([{"name": "step", "absent": "MNIST is not here"}], "MNIST is not here"),
        ([{"name": "step", "error": "out of memory"}], "out of memory"),
        ([{"name": "step", "error": 2e-7}], ""),  # here it is a number
    ],
)
def test_a_row_that_is_missing_says_why(every, seen, why):
    (row,) = joined(every, record([{"name": "step", "ratio": 0.5, "error": 1e-7}]), seen)
    assert (row["numbers"]["ratio"], row["why"]) == ([0.5, None], why)
    assert every.ending([row], {}) == f"0 of 1 recorded figures were measured here.\n1 were not: {why or 'not here'}."


def test_what_failed_is_named_and_what_it_left_counts(every):
    known, failed = record([{"name": "a", "ratio": 1.0}, {"name": "b", "ratio": 1.0}]), "exit code 1: no torch"
    rows = joined(every, known, [{"name": "a", "ratio": 2.0}], failed=failed)
    assert [(row["numbers"]["ratio"][1], row["why"]) for row in rows] == [(2.0, ""), (None, f"failed: {failed}")]
    assert every.ending(rows, {"x": failed}) == f"1 of 2 recorded figures were measured here.\nFAILED x: {failed}"


@pytest.mark.parametrize(
    ("machine", "gpus", "runs", "why"),
    [
        (CPU, 0, [["--threads", "1"]], "not in this run"),
        ({**CPU, "gpu": None}, 0, [["--threads", "1"]], "not in this run"),
        (GPU, 0, [], "needs a GPU"),
        (GPU, 1, [["--threads", "1"]], "not in this run"),
        ({**GPU, "gpus": 2}, 1, [], "needs two GPUs"),
        ({**GPU, "gpus": 2}, 2, [["--threads", "1"]], "not in this run"),
    ],
)
def test_what_needs_gpus_runs_where_they_are(every, machine, gpus, runs, why):
    known = record([{"name": "step", "ratio": 0.5}], machine=machine)
    assert every.planned("x", known, False, gpus) == (runs, why)
    (row,) = joined(every, known, [], why)
    assert row["why"] == why


def test_the_commands_of_a_record_are_run_again_and_the_short_form_once(every):
    command = "python benchmarks/x.py --beside 0 --json x.json; python benchmarks/x.py --beside 3 --picture docs/x.png"
    known = record([{"name": "step", "ratio": 0.5}], command)
    assert every.planned("x", known, False, 0)[0] == [["--beside", "0"], ["--beside", "3"]]
    assert every.planned("x", known, True, 0) == ([["--quick"]], "not in the short form")


def test_a_short_form_that_computes_something_else_is_left_out(every):
    known = record([{"name": "int8", "ratio": 0.5}], "python benchmarks/precision.py --json x.json")
    runs, why = every.planned("precision", known, True, 0)
    assert runs == []
    assert "smaller" in why
    assert "long" in every.planned("verdicts", record([], "python benchmarks/verdicts.py"), True, 0)[1]


PROGRAM = """\
import json, sys
file = sys.argv[sys.argv.index("--json") + 1]
{}
"""


@pytest.fixture
def staged(every, tmp_path, monkeypatch):
    """Benchmarks of four kinds in a folder of their own, and a run of them all."""
    good = "open(file, 'w').write(json.dumps({'rows': [{'name': 'a', 'ratio': 0.5}]}))"
    programs = {
        "good": good,
        "half": f"{good}; sys.exit('two rows are wrong')",
        "broken": "raise ModuleNotFoundError('no torch')",
        "new": "",
    }
    for name, lines in programs.items():
        (tmp_path / f"{name}.py").write_text(PROGRAM.format(lines), encoding="utf-8")
    monkeypatch.setattr(every, "HERE", tmp_path)
    known = {
        name: record([{"name": "a", "ratio": 1.0}], f"python benchmarks/{name}.py")
        for name in ("good", "half", "broken", "gone")
    }
    names = ["broken", "gone", "good", "half", "new"]
    return every.measured(names, known, list(programs), Namespace(quick=True), tmp_path / "records")


def test_a_benchmark_that_fails_is_named_and_the_rest_goes_on(staged):
    assert {name: [row["ratio"] for row in seen.rows.values()] for name, seen in staged.items()} == {
        **{"broken": [], "gone": [], "new": []},
        **{"good": [0.5], "half": [0.5]},
    }
    assert {name: seen.failed for name, seen in staged.items() if seen.failed} == {
        "broken": "exit code 1: ModuleNotFoundError: no torch",
        "half": "exit code 1: two rows are wrong",
        "gone": "gone.json is a record of no benchmark: benchmarks/gone.py is not there",
        "new": "benchmarks/new.py has no record",
    }


def test_every_record_has_a_benchmark_and_each_row_a_figure_that_is_printed(every):
    records, programs = every.measurements.records(), every.benchmarks(BENCHMARKS)
    assert set(records) <= set(programs)
    assert [name for name in every.LEFT_OUT if name not in programs] == []
    for name, known in records.items():
        assert every.planned(name, known, True, 8)
        rows = joined(every, known, [])
        assert [row["name"] for row in rows if not {*every.CLAIMED} & {*row["numbers"]}] == [], name


def test_the_whole_program_writes_what_it_found(every, tmp_path, monkeypatch, capsys):
    (tmp_path / "x.py").write_text(f'"""X.\n\n    python x.py --json FILE\n"""\n{PROGRAM.format("")}', encoding="utf-8")
    monkeypatch.setattr(every, "HERE", tmp_path)
    monkeypatch.setattr(every.measurements, "records", lambda: {"x": record([{"name": "a", "ratio": 1.0}])})
    monkeypatch.setattr(sys, "argv", ["everything.py", "--quick", "--json", str(tmp_path / "all.json")])
    assert every.main() == 0
    printed = capsys.readouterr().out
    assert "0 of 1 recorded figures were measured here." in printed
    assert json.loads((tmp_path / "all.json").read_text(encoding="utf-8"))["rows"][0]["why"] == "not in the short form"
