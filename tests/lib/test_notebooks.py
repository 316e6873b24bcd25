"""Running notebooks: whatever a cell does, the answer is a result."""

import os
import sys
import tempfile
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from jupyter_client.provisioning.local_provisioner import LocalPortCache
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from traitlets.log import get_logger

from unrolled.checks.report import MIME, Report
from unrolled.notebook import run
from verdicts import report


def verdict(name: str, points: float = 1) -> Report:
    return report(name, "pass" if points else "fail")


def shown(name: str = "conv2d", points: float = 1) -> list:
    """The outputs of a cell that displayed a verdict."""
    return [new_output("display_data", {MIME: verdict(name, points).to_dict()})]


def says(name: str, points: float = 1, display: str = "display(bundle, raw=True)") -> str:
    """The source of a cell that displays a verdict as a check does."""
    bundle = {"text/plain": name, MIME: verdict(name, points).to_dict()}
    return f"from IPython.display import display\nbundle = {bundle!r}\n{display}"


def graded(source: str, grade_id: str):
    return new_code_cell(source, metadata={"nbgrader": {"grade": True, "solution": False, "grade_id": grade_id}})


def executed_with(tmp_path, *cells, **options):
    nb = new_notebook(cells=[new_code_cell(cell) if isinstance(cell, str) else cell for cell in cells])
    return run.execute(nb, **{"cwd": tmp_path, "cell_timeout": 20, **options})


def text(executed, index: int | None = None) -> str:
    """All that a cell printed: a slow kernel sends a line and its end apart."""
    cell = executed if index is None else executed.notebook.cells[index]
    return "".join(output.get("text", "") for output in cell.outputs)


def test_errors_do_not_end_the_run_and_verdicts_are_gathered_with_their_cells(tmp_path):
    updates = "handle = display({'text/plain': '...'}, raw=True, display_id=True)\nhandle.update(bundle, raw=True)"
    cells = new_markdown_cell("# A title"), "1 / 0", graded(says("conv2d"), "check_conv2d"), says("im2col", 0, updates)
    executed = executed_with(tmp_path, *cells)
    (error,) = executed.errors
    assert (error.cell_index, error.name) == (1, "ZeroDivisionError")
    assert str(error) == "cell 1: ZeroDivisionError: division by zero"
    assert executed.stopped is None
    assert {name: (r.cell_index, r.grade_id) for name, r in executed.reports.items()} == {
        "conv2d": (2, "check_conv2d"),
        "im2col": (3, None),
    }
    assert executed.reports["conv2d"].report() == verdict("conv2d")
    assert not executed.reports["im2col"].report().passed, "a display that is updated counts as it ends"


def test_the_kernel_is_this_python_in_the_given_folder_with_the_given_environment(tmp_path):
    facts = "sys.executable, os.getcwd(), os.environ['MINE'], os.environ['UNROLLED_JOURNAL']"
    show = f"import os, sys; print({facts}, sep='\\n')"
    *found, journal = text(executed_with(tmp_path, show, env={"MINE": "7"}), 0).split()
    assert found == [sys.executable, str(tmp_path), "7"]
    assert not journal.startswith((str(tmp_path), os.getcwd())), "the learner's journal is not touched"
    given = executed_with(tmp_path, show, env={"MINE": "7", "UNROLLED_JOURNAL": "/there"})
    assert text(given, 0).split()[3] == "/there"


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such sockets")
@pytest.mark.parametrize(("folder", "asks"), [("t", False), ("t" * 100, True)])
def test_a_kernel_takes_no_port_unless_the_names_of_its_sockets_are_too_long(tmp_path, monkeypatch, folder, asks):
    spec = tmp_path / "kernels" / "python3" / "kernel.json"  # one of the machine does not take the kernel's place
    spec.parent.mkdir(parents=True)
    spec.write_text('{"argv": ["false"], "display_name": "another", "language": "python"}', encoding="utf-8")
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))
    asked = []
    find = LocalPortCache.find_available_port
    monkeypatch.setattr(LocalPortCache, "find_available_port", lambda *args: asked.append(args) or find(*args))
    with TemporaryDirectory() as short:
        (Path(short) / folder).mkdir()
        monkeypatch.setattr(tempfile, "tempdir", str(Path(short) / folder))
        assert text(executed_with(tmp_path, "print('on')"), 0) == "on\n"
        assert bool(asked) is asks


def test_outputs_that_the_notebook_brings_along_count_for_nothing(tmp_path):
    calls, forged = [], new_code_cell("print('a')", outputs=shown())
    executed = executed_with(
        tmp_path,
        *(forged, new_markdown_cell("text"), "print('c')"),
        on_cell=lambda index, cell: calls.append((index, text(cell))),
    )
    assert calls == [(0, "a\n"), (2, "c\n")]
    assert executed.reports == {}
    assert len(forged.outputs) == 1, "the notebook handed in is not changed"


@pytest.fixture
def limited(tmp_path, monkeypatch):
    """The time of a cell that makes the file `begun` begins then; that of other cells is a minute."""

    class Client(run._Client):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            self.timeout_func = lambda cell: wait() if "begun" in cell.source else 60

    def wait():
        while not (tmp_path / "begun").exists():
            time.sleep(0.01)
        return 0.1

    monkeypatch.setattr(run, "_Client", Client)


@pytest.mark.usefixtures("limited")
def test_a_cell_that_runs_too_long_is_interrupted_and_the_next_ones_run(tmp_path, monkeypatch):
    monkeypatch.setattr(run, "IOPUB_TIMEOUT", 600)
    endless = "open('begun', 'w').close()\nwhile True: pass"
    executed = executed_with(tmp_path, "print('on')", endless, "print('on')", cell_timeout=5)
    (error,) = executed.errors
    assert (error.cell_index, error.name, error.message) == (1, "CellTimeoutError", "interrupted after 5 s")
    assert executed.stopped is None
    assert text(executed, 2) == "on\n"


@pytest.mark.usefixtures("limited")
def test_a_cell_that_ignores_the_interrupt_ends_the_run(tmp_path, monkeypatch):
    begun = "import time\nopen('begun', 'w').close()\n"
    deaf = f"{begun}while True:\n    try: time.sleep(600)\n    except KeyboardInterrupt: pass"
    monkeypatch.setattr(run, "IOPUB_TIMEOUT", 1)
    executed = executed_with(tmp_path, deaf, "print('on')", cell_timeout=3)
    assert executed.errors[0].name == "CellTimeoutError"
    assert "still busy after 3 s and an interrupt" in executed.stopped
    assert executed.notebook.cells[1].outputs == []


def test_a_dead_kernel_is_an_error_in_the_result_and_no_logger_says_so(tmp_path, capfd):
    before = get_logger().getEffectiveLevel()
    executed = executed_with(tmp_path, says("conv2d"), graded("import os; os._exit(1)", "check_im2col"), "print('on')")
    (error,) = executed.errors
    assert (error.cell_index, error.grade_id, error.name) == (1, "check_im2col", "DeadKernelError")
    assert executed.stopped == error.message == "the kernel died; the cells below were not run"
    assert list(executed.reports) == ["conv2d"], "what was found before stays"
    assert executed.notebook.cells[1].outputs[-1].ename == "DeadKernelError"
    assert get_logger().getEffectiveLevel() == before
    assert capfd.readouterr() == ("", "")
    assert executed.notebook.cells[2].outputs == []


def test_endless_output_and_large_pictures_are_cut_and_leave_the_report(tmp_path, monkeypatch):
    monkeypatch.setattr(run, "STREAM_LIMIT", 1000)
    monkeypatch.setattr(run, "RICH_LIMIT", 10_000)
    show = "from IPython.display import display\n" + 5 * "display({'image/png': 'A' * 4000}, raw=True)\n"
    executed = executed_with(tmp_path, "for _ in range(500): print('x' * 99)\n" + says("conv2d"), show)
    assert text(executed, 0).count("x") <= 1000
    assert "[output cut after 1,000 characters]" in text(executed, 0)
    assert list(executed.reports) == ["conv2d"]
    assert [output.output_type for output in executed.notebook.cells[1].outputs].count("display_data") == 2


def test_a_kernel_that_cannot_start_is_an_error_in_the_result(tmp_path):
    executed = executed_with(tmp_path, "1", cwd=tmp_path / "not there")
    assert executed.errors[0].cell_index == -1
    assert "could not be started" in executed.stopped


@pytest.mark.parametrize("content", ["{", "[]", '{"cells": 3}', "\0\0", "", '{"nbformat": 4, "nbformat_minor": 5}'])
def test_a_file_that_is_no_notebook_is_named(tmp_path, content):
    file = tmp_path / "broken.ipynb"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(ValueError, match=r"broken\.ipynb is not a notebook"):
        run.execute(file, cwd=tmp_path)


@pytest.mark.parametrize("seconds", [0, -1, float("inf"), float("nan")])
def test_a_cell_has_a_positive_number_of_seconds(tmp_path, seconds):
    with pytest.raises(ValueError, match="must be a positive number of seconds"):
        run.execute(new_notebook(), cwd=tmp_path, cell_timeout=seconds)


def test_of_two_verdicts_by_one_check_the_graded_cell_counts_else_the_last():
    def cell(points, **nbgrader):
        return new_code_cell("", outputs=shown(points=points), metadata={"nbgrader": nbgrader} if nbgrader else {})

    graded = {"grade_id": "g"}
    for made, points in [([cell(0), cell(1)], 1), ([cell(0, **graded), cell(1)], 0), ([cell(0), cell(1, **graded)], 1)]:
        (found,) = run.reports(new_notebook(cells=made)).values()
        assert found.report().points == points


def test_a_malformed_verdict_is_a_value_error_and_one_of_another_form_is_none():
    def found(data):
        cell = new_code_cell("", outputs=[new_output("display_data", {MIME: data})])
        return run.reports(new_notebook(cells=[cell]))

    for data in ({"check": "conv2d"}, verdict("conv2d").to_dict() | {"parts": 3}):
        with pytest.raises(ValueError, match="malformed verdict of conv2d"):
            found(data)["conv2d"].report()
    assert [found(data) for data in ("text", {"check": 3}, {})] == [{}, {}, {}]
