"""Reported cases as in test_reported: pictures in answers, answers beside their cells, lines that fail, heavy files."""

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import hostile
import pytest
import small_course
from nbconvert import HTMLExporter
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_raw_cell
from small_course import GOOD, answered
from test_collect import LESSON, notebook
from test_repair import at

from unrolled import parallel
from unrolled.notebook import handin
from unrolled.parallel import mpi, mpi_start
from unrolled_grader.grading import Grading
from unrolled_grader.judge import repair, verdicts
from unrolled_grader.judge.verdicts import Options, Submission
from unrolled_grader.results import feedback, pictures

SMALL, LARGE, HUGE = hostile.png(), hostile.png(5000, 5000, "1"), hostile.png(5000, 5001, "1")
PICTURES = {
    "![a graph](attachment:my%20graph.png)": SMALL,
    '<img src="attachment:large.png" width="300">': LARGE,
    f"![pasted](data:image/png;base64,{SMALL})": SMALL,
    f"<p><img alt='x' src='data:image/png;base64,{LARGE}'></p>": LARGE,
    "![](attachment:huge.png)": "(picture left out, ",
    '<img src="attachment:huge.png" alt="a > b">': "(picture left out, ",
    f"![](data:image/svg+xml;base64,{'A' * 4000})": "(picture left out, 3 kB)",
    "![](attachment:nowhere.png) and words": "(picture left out, 0 kB) and words",
    "`![](attachment:large.png)`": "<code>![]((a picture))</code>",
    "![](attachment:image%20(1).png)": SMALL,
    "![](<attachment:image (1).png>)": SMALL,
    "<img src='attachment:image (1).png'>": SMALL,
    "| ![graph][1] |\n|---|\n\n[1]: attachment:large.png": LARGE,
    "- ![graph][1]\n\n[1]: attachment:huge.png 'a > b'": "<li>(picture left out, ",
    "![a graph](https://example.org/a.png)": "(picture left out)",
    f"<img src='data:image/png;charset=utf-8;base64,{SMALL}'>": SMALL,
}
ATTACHED = {"image (1).png": SMALL, "my graph.png": SMALL, "large.png": LARGE, "huge.png": HUGE}


@pytest.mark.parametrize("text", PICTURES)
@pytest.mark.parametrize("page", ["feedback", "formgrader"])
def test_pictures_in_answers_are_shown_wherever_a_person_reads(root: Path, page: str, text: str) -> None:
    cell = new_markdown_cell(f"Words first.\n\n{text}\n\n**Words** last.")
    cell.attachments = {name: {"image/png": data} for name, data in ATTACHED.items()}
    nb = new_notebook(cells=[cell])
    if page == "feedback":
        markup = feedback.page(nb, {})
    else:
        markup, _ = HTMLExporter(config=Grading.at(root).config).from_notebook_node(nb)
    wanted = PICTURES[text]
    assert (f'src="data:image/png;base64,{wanted}"' if wanted in (SMALL, LARGE) else wanted) in markup
    assert "<strong>Words</strong> last." in markup
    assert "picture-" not in markup


def test_a_picture_shown_a_hundred_times_stops_at_the_room_there_is() -> None:
    cell = new_markdown_cell("![](attachment:a.png)" * 100, attachments={"a.png": {"image/png": "iVBO" * 1_000_000}})
    markup = feedback.page(new_notebook(cells=[cell]), {})
    assert markup.count("(picture left out, 3000 kB)") == 100
    limited = pictures.Pictures({"a.png": {"image/png": SMALL}}, room=len(SMALL) * 3)
    shown = limited.put_back(limited.with_placeholders("![](attachment:a.png) " * 5))
    assert shown.count("(picture left out, 1 kB)") == 3


def below(notebook: NotebookNode, cell: NotebookNode) -> None:
    notebook.cells.insert(at(notebook, "explain_total") + 1, cell)


@pytest.mark.parametrize(
    "write",
    [
        lambda notebook: below(notebook, new_markdown_cell("One call.\n\nNot many.")),
        lambda notebook: below(notebook, new_code_cell("# One call.\n#\n# Not many.")),
        lambda notebook: below(notebook, new_code_cell("One call.\nNot many.")),
        lambda notebook: below(notebook, new_code_cell("  # One call.\n'Not many.'")),
        lambda notebook: below(notebook, new_raw_cell("One call.\nNot many.")),
        lambda notebook: notebook.cells.__setitem__(
            at(notebook, "explain_total"), new_code_cell("# One call.\n# Not many.")
        ),
        lambda notebook: notebook.cells.insert(
            at(notebook, "explain_total"), new_markdown_cell("One call.\nNot many.")
        ),
    ],
)
def test_an_answer_beside_its_cell_is_listed_to_look_at(root: Path, write: Callable[[NotebookNode], None]) -> None:
    handed = answered(root, GOOD)
    write(handed)
    _, notes = repair.repaired(handed, small_course.released(root))
    (note,) = [note for note in notes if note.to_look]
    assert str(note).startswith("explain_total: its cell is as it was handed out, but beside it stands: One call.")
    assert "Not many." in note.text


def test_an_answer_beside_an_emptied_cell_is_listed_too(root: Path) -> None:
    handed = answered(root, GOOD | {"explain_total": " "})
    below(handed, new_markdown_cell("One call."))
    _, notes = repair.repaired(handed, small_course.released(root))
    assert [str(note) for note in notes] == ["explain_total: its cell is empty, but beside it stands: One call."]


def test_what_is_no_answer_is_not_listed(root: Path) -> None:
    handed = answered(root, GOOD | {"explain_total": "One call."})
    below(handed, new_markdown_cell("A note of my own."))
    empty = answered(root, GOOD)
    below(empty, new_code_cell("total(x)  # tried"))
    for one in (handed, empty):
        assert not any(note.to_look for note in repair.repaired(one, small_course.released(root))[1])


def test_a_failing_line_above_a_function_costs_the_line(root: Path) -> None:
    answers = {name: f"import missing\n{source}\nmissing.set_theme()" for name, source in GOOD.items()}
    submission = Submission("ann", small_course.LESSON, answered(root, answers), small_course.SPECS)
    found = verdicts.judge(submission, Options(timing=False))
    assert {score.part: score.verdict for score in found.scores if score.max_points}["double"] == "pass"
    raised = "`import missing` raised ModuleNotFoundError: No module named 'missing'"
    words = f"{raised}; the rest of the cell was run all the same"
    assert dict(found.notes) == dict.fromkeys(GOOD, words)


@pytest.mark.parametrize("heavy", ["outputs", "widgets"])
def test_a_heavy_notebook_is_handed_in_without_its_outputs_and_says_so(
    heavy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handin, "NOTEBOOK_BYTES", 10_000)
    nb = json.loads(notebook("x = 1"))
    if heavy == "outputs":
        shown = {"output_type": "stream", "name": "stdout", "text": "y" * 600}
        nb["cells"] = [cell | {"outputs": [shown]} for cell in nb["cells"] * 30]
    else:
        nb["metadata"]["widgets"] = {"application/vnd.jupyter.widget-state+json": {"state": "y" * 12_000}}
    read = handin.read(handin.make(nb, {}, "ada", LESSON))
    assert read.dropped[0].startswith("all outputs and the state of widgets, 0.0 MB")
    left = json.loads(read.notebook)
    assert [cell["source"] for cell in left["cells"]] == [cell["source"] for cell in nb["cells"]]
    assert not any(cell["outputs"] for cell in left["cells"])
    assert "widgets" not in left["metadata"]


def test_mpis_advice_names_what_is_in_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    monkeypatch.setenv("MPI4PY_MPIABI", "openmpi")
    with pytest.raises(parallel.NoEngineError, match="MPI4PY_MPIABI is 'openmpi'; unset it"):
        mpi.load()
    monkeypatch.setattr(mpi_start, "load", lambda: None)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    for installed, advice in (
        ({"mpich"}, "--force-reinstall mpich"),
        ({"impi-rt"}, "reinstall impi-rt"),
        ((), "install mpich"),
    ):
        monkeypatch.setattr(mpi_start, "_is_installed", installed.__contains__ if installed else lambda wheel: False)
        with pytest.raises(
            parallel.NoEngineError, match=f"mpiexec, which is not here: pip install .*{advice}|{advice}$"
        ):
            mpi_start.launcher()
