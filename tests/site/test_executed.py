"""Lessons are executed once for the same bytes, and only a clean run is kept."""

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from unrolled.notebook import cells, run
from unrolled_grader.authoring import executed


@pytest.fixture
def write(tmp_path):
    """Write a solution of one cell."""

    def write(source: str, lesson: str = "90_small") -> None:
        file = tmp_path / "solutions" / lesson / f"{lesson}.ipynb"
        file.parent.mkdir(parents=True, exist_ok=True)
        nbformat.write(new_notebook(cells=[new_code_cell(source)]), file)

    return write


@pytest.fixture
def runs(monkeypatch):
    """What was run, in place of a kernel: the cell prints its own source; a cell that says raise goes wrong."""
    seen = []

    def execute(source, **_options):
        notebook = cells.read(source)
        seen.append(notebook.cells[0].source)
        notebook.cells[0].outputs = [nbformat.v4.new_output("stream", text=seen[-1])]
        wrong = "raise" in seen[-1]
        errors = (run.CellError(0, None, "ValueError", "no"),) if wrong else ()
        return run.Executed(notebook, {}, errors, None, 1.0)

    monkeypatch.setattr(run, "execute", execute)
    return seen


def printed(result: run.Executed) -> str:
    return result.notebook.cells[0].outputs[0].text


def test_the_same_bytes_run_once(tmp_path, write, runs):
    write("1")
    first, second = (executed.lesson(tmp_path, "90_small") for _ in range(2))
    assert runs == ["1"]
    assert printed(first) == printed(second) == "1"
    assert second.errors == ()


def test_other_bytes_run_again_and_replace_what_was_kept(tmp_path, write, runs):
    for source in ("1", "2"):
        write(source)
        assert printed(executed.lesson(tmp_path, "90_small")) == source
    assert runs == ["1", "2"]
    assert len(list((tmp_path / executed.FOLDER).iterdir())) == 1


def test_another_library_runs_again(tmp_path, write, runs, monkeypatch):
    write("1")
    executed.lesson(tmp_path, "90_small")
    (tmp_path / "library").mkdir()
    (tmp_path / "library" / "module.py").write_text("changed = True")
    monkeypatch.setattr(executed.unrolled, "__file__", str(tmp_path / "library" / "__init__.py"))
    executed.lesson(tmp_path, "90_small")
    assert runs == ["1", "1"]


def test_a_run_that_went_wrong_is_not_kept(tmp_path, write, runs):
    write("raise")
    for _ in range(2):
        assert executed.lesson(tmp_path, "90_small").errors
    assert runs == ["raise", "raise"]
    assert not list(tmp_path.glob("build/executed/*"))


def test_several_come_by_name(tmp_path, write, runs):
    write("1", "90_small")
    write("2", "91_other")
    found = executed.lessons(tmp_path, ["91_other", "90_small"])
    assert {name: printed(result) for name, result in found.items()} == {"90_small": "1", "91_other": "2"}
