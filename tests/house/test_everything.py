"""benchmarks/everything.py joins what a machine measured with the records, row by row; nothing is measured here."""

import importlib
import json
import sys
from argparse import Namespace
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
CPU = {"processor": "A", "cores": 2}
GPU = {**CPU, "gpu": "B"}


@pytest.fixture
def every(monkeypatch):
    """benchmarks/everything.py as a module."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("everything")


def record(rows, command="taskset -c 2,3 python benchmarks/x.py --threads 1 --json a/x.json", machine=CPU):
    return {"command": command, "date": "2026-11-24T02:06:25+00:00", "machine": machine, "rows": rows}


def joined(every, known, seen, plan=None, failed=""):
    return every.joined("x", known, plan or every.Plan([[]]), every.Seen({row["name"]: row for row in seen}, failed))


def test_a_row_stands_beside_its_record(every):
    known = record([{"name": "step", "peer": "P", "ours_s": 0.2, "ratio": 0.5}])
    (row,) = joined(every, known, [{"name": "step", "ours_s": 0.1, "ratio": 0.4}])
    assert row == {
        "record": "x",
        "date": "2026-11-24",
        "machine": "A",
        "name": "step",
        "figure": "ratio",
        "recorded": 0.5,
        "here": 0.4,
        "here / recorded": pytest.approx(0.8),
        "why": "",
        "numbers": {"ours_s": [0.2, 0.1], "ratio": [0.5, 0.4]},
    }
    assert every.short(row)["from"] == "x.json, 2026-11-24, A"


@pytest.mark.parametrize(
    ("seen", "why"),
    [
        ([], "not in this run"),
        ([{"name": "step", "absent": "MNIST is not here"}], "MNIST is not here"),
        ([{"name": "step", "error": "out of memory"}], "out of memory"),
        ([{"name": "step", "ours_s": 1.0}], "the row has no ratio here"),
    ],
)
def test_a_row_that_is_missing_says_why(every, seen, why):
    (row,) = joined(every, record([{"name": "step", "ratio": 0.5}]), seen)
    assert (row["here"], row["here / recorded"], row["why"]) == (None, None, why)
    assert every.short(row)["here"] == why


def test_nothing_is_divided_by_a_recorded_zero(every):
    (row,) = joined(every, record([{"name": "judge", "erred": 0}]), [{"name": "judge", "erred": 0}])
    assert (row["recorded"], row["here"], row["here / recorded"]) == (0, 0, None)


def test_what_failed_is_named_and_what_it_left_counts(every):
    rows = joined(
        every,
        record([{"name": "a", "ratio": 1.0}, {"name": "b", "ratio": 1.0}]),
        [{"name": "a", "ratio": 2.0}],
        failed="exit code 1: no torch",
    )
    assert [(row["here"], row["why"]) for row in rows] == [(2.0, ""), (None, "failed: exit code 1: no torch")]
    assert every.ending(rows, {"x": "exit code 1: no torch"}) == (
        "1 of 2 recorded figures were measured here.\nFAILED x: exit code 1: no torch"
    )


@pytest.mark.parametrize(
    ("machine", "gpus", "runs", "why"),
    [
        (CPU, 0, [["--threads", "1"]], ""),
        (GPU, 0, [], "needs a GPU"),
        (GPU, 1, [["--threads", "1"]], ""),
        ({**GPU, "gpus": 2}, 1, [], "needs two GPUs"),
        ({**GPU, "gpus": 2}, 2, [["--threads", "1"]], ""),
    ],
)
def test_what_needs_gpus_runs_where_they_are(every, machine, gpus, runs, why):
    known = record([{"name": "step", "ratio": 0.5}], machine=machine)
    plan = every.planned("x", known, False, gpus)
    assert plan.runs == runs
    (row,) = joined(every, known, [], plan)
    assert row["why"] == (why or "not in this run")
    assert row["machine"] == ("B" if "gpu" in machine else "A")


def test_without_a_gpu_the_rows_of_the_host_are_measured(every):
    rows = [{"name": "a", "section": "one layer", "ratio": 1.0}, {"name": "b", "section": "CPU", "ratio": 1.0}]
    plan = every.planned("x", known := record(rows, machine=GPU), True, 0)
    assert plan.runs == [["--quick", "--only", "CPU", "--threads", "1"]]
    found = joined(every, known, [{"name": "b", "ratio": 0.5}], plan)
    assert [(row["machine"], row["here"], row["why"]) for row in found] == [("B", None, "needs a GPU"), ("A", 0.5, "")]


def test_the_commands_of_a_record_are_run_again_and_the_short_form_once(every):
    command = "python benchmarks/x.py --beside 0 --json x.json; python benchmarks/x.py --beside 3 --picture docs/x.png"
    known = record([{"name": "step", "ratio": 0.5}], command)
    assert every.planned("x", known, False, 0).runs == [["--beside", "0"], ["--beside", "3"]]
    plan = every.planned("x", known, True, 0)
    assert plan.runs == [["--quick"]]
    assert joined(every, known, [], plan)[0]["why"] == "not in the short form"


def test_a_short_form_that_computes_something_else_is_left_out(every):
    known = record([{"name": "int8", "ratio": 0.5}], "python benchmarks/precision.py --json x.json")
    plan = every.planned("precision", known, True, 0)
    assert plan.runs == []
    (row,) = joined(every, known, [], plan)
    assert "smaller" in row["why"]
    long = record([{"name": "errs", "erred": 0}], "python benchmarks/verdicts.py")
    assert "long" in joined(every, long, [], every.planned("verdicts", long, True, 0))[0]["why"]


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
    rows, failed = staged
    assert {row["record"]: row["here"] for row in rows} == {"broken": None, "gone": None, "good": 0.5, "half": 0.5}
    assert failed == {
        "broken": "exit code 1: ModuleNotFoundError: no torch",
        "half": "exit code 1: two rows are wrong",
        "gone": "gone.json is a record of no benchmark: benchmarks/gone.py is not there",
        "new": "benchmarks/new.py has no record",
    }


def test_every_record_has_a_benchmark_and_its_figures_a_headline(every):
    records, programs = every.measurements.records(), every.benchmarks(BENCHMARKS)
    assert set(records) <= set(programs)
    assert [name for name in (*every.LONG, *every.SMALLER) if name not in programs] == []
    for name, known in records.items():
        assert every.planned(name, known, True, 8)
        assert [row["name"] for row in known["rows"] if not every.headline(row) and "failed" not in row] == []


def test_figures_without_a_benchmark_are_listed(every):
    lines = list(every.measured_once(every.FIGURES.read_text(encoding="utf-8")))
    assert any(line.startswith("README.md: 72 s; 94 s (processor time of set-up") for line in lines)
    assert not any("Qiita" in line for line in lines)


def test_the_whole_program_writes_what_it_found(every, tmp_path, monkeypatch, capsys):
    (tmp_path / "x.py").write_text(f'"""X.\n\n    python x.py --json FILE\n"""\n{PROGRAM.format("")}', encoding="utf-8")
    monkeypatch.setattr(every, "HERE", tmp_path)
    monkeypatch.setattr(every.measurements, "records", lambda: {"x": record([{"name": "a", "ratio": 1.0}])})
    monkeypatch.setattr(sys, "argv", ["everything.py", "--quick", "--json", str(tmp_path / "all.json")])
    assert every.main() == 0
    printed = capsys.readouterr().out
    assert "0 of 1 recorded figures were measured here." in printed
    assert "README.md: 72 s" in printed
    assert json.loads((tmp_path / "all.json").read_text(encoding="utf-8"))["rows"][0]["why"] == "not in the short form"
