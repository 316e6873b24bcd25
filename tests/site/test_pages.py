"""From a learner's notebook and an executed solution to a page."""

import base64
import io
import sys
from pathlib import Path

import numpy as np
import pytest
from bs4 import BeautifulSoup
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from PIL import Image

from unrolled.checks.report import MIME, Part, Report
from unrolled_grader.authoring.site import pages, record

META = {"kernelspec": {"name": "python3", "display_name": "Python 3"}, "language_info": {"name": "python"}}


def png(width: int = 700) -> bytes:
    """A picture with many colours."""
    buffer = io.BytesIO()
    Image.fromarray(np.random.default_rng(0).integers(0, 255, (50, width, 3), np.uint8)).save(buffer, format="png")
    return buffer.getvalue()


def image(alt: str = "A ramp.") -> str:
    return f'<img src="data:image/png;base64,{base64.b64encode(png()).decode()}" alt="{alt}" width="350" style="x: y">'


def made(tmp_path, *outputs, source="1"):
    """The outputs on the page of a cell that had these."""
    cells = [new_markdown_cell("# Title", id="title"), new_code_cell("!pip\nstub", id="cell")]
    solved = [cells[0], new_code_cell(source, id="cell", outputs=list(outputs))]
    learner, executed = (new_notebook(cells=each, metadata=META) for each in (cells, solved))
    page = pages.page(learner, executed, "90_small", tmp_path / "figures", install="!pip", record="## The record")
    assert [cell.source for cell in page.cells[1:]] == ["stub", "## The record"]
    return page.cells[1].outputs


def test_a_picture_becomes_a_smaller_file_and_keeps_its_words(tmp_path):
    (output,) = made(
        tmp_path, new_output("display_data", {"text/html": image(), "image/png": "…", "text/plain": "A ramp."})
    )
    shown = BeautifulSoup(output.data["text/html"], "html.parser").img
    (file,) = (tmp_path / "figures").iterdir()
    assert set(output.data) == {"text/html"}
    assert (shown["src"], shown["alt"]) == (f"../figures/{file.name}", "A ramp.")
    assert (shown["width"], shown["height"], shown["style"]) == ("350", "25", "min-width: 350px")
    assert file.stat().st_size < len(png()) / 2


def test_a_widget_is_a_still_that_says_so_and_a_bare_one_is_left_out(tmp_path):
    still = new_output("display_data", {"text/html": image(), pages.WIDGET_VIEW: {"model_id": "x"}})
    progress = new_output("display_data", {"text/plain": "0/8", pages.WIDGET_VIEW: {"model_id": "y"}})
    (output,) = made(tmp_path, still, progress)
    assert "sliders move this picture" in output.data["text/html"]


def test_a_finding_has_no_colours_of_its_own(tmp_path):
    row = '<tr><td style="a: b"><span style="color:#111">✗ not run</span></td></tr>'
    report = f"<div><b>im2col</b><table>{row}</table></div>"
    (output,) = made(tmp_path, new_output("display_data", {"text/html": report, MIME: {}}))
    assert "style" not in output.data["text/html"]
    assert 'class="verdict not-run"' in output.data["text/html"]


def test_what_was_printed_is_one_piece_without_the_machines_folders(tmp_path):
    python, cache = Path(sys.prefix, "bin", "python"), Path.home() / ".cache"
    texts = ["Unrolled. The journal is /tmp/x/journal.json.\n", f"{python}, {cache}\n"]
    errors = new_output("stream", name="stderr", text="100%|###| 8/8")
    (output,) = made(tmp_path, *(new_output("stream", name="stdout", text=text) for text in texts), errors)
    shown = output.text.replace("\\", "/")
    assert shown == "Unrolled. The journal is journal.json.\n.venv/bin/python, ~/.cache\n"


@pytest.mark.parametrize("wrong", [image(alt=" "), '<img src="https://example.org/x.png" alt="x">'])
def test_a_picture_without_words_or_from_elsewhere_is_refused(tmp_path, wrong):
    with pytest.raises(ValueError, match="an output shows"):
        made(tmp_path, new_output("display_data", {"text/html": wrong}))


def test_notebooks_of_other_cells_are_refused(tmp_path):
    learner, other = (new_notebook(cells=[new_markdown_cell("x", id=name)]) for name in ("a", "b"))
    with pytest.raises(ValueError, match="make build"):
        pages.page(learner, other, "90_small", tmp_path)


def test_the_cell_for_words_shows_neither_answer_nor_rubric(tmp_path):
    answer = new_markdown_cell("YOUR ANSWER HERE", id="w", metadata={"nbgrader": {"solution": True}})
    learner = new_notebook(cells=[new_markdown_cell("# T", id="t"), answer], metadata=META)
    solved = new_notebook(cells=[learner.cells[0], new_markdown_cell("*Rubric*: 1 point", id="w")], metadata=META)
    assert pages.page(learner, solved, "90_small", tmp_path).cells[1].source == pages.HERE_YOUR_WORDS


def test_a_record_says_what_was_found_and_which_measurements_are_the_lessons():
    parts = Part("ink", "pass", 1, 1, "4 cases right"), Part("ink/speed", "deferred", 0, 2, "needs a GPU")
    rung = {"label": "plain loops", "seconds": 90.0}
    lines = [
        f"| [About {name}](#about-{name}) | {lessons} | a GPU | 2026-11-28 |"
        for name, lessons in (("x", "02, 90"), ("y", ""))
    ]
    text = record.of_lesson("90_small", [Report("ink", "1", (), parts, rung=rung)], "\n".join(lines))
    assert "- `ink`, 1 of 3: 4 cases right; needs a GPU; plain loops: 90 s for 60,000 images" in text
    assert text.endswith("\n- [About x](../docs/measurements.md#about-x): a GPU, 2026-11-28")
    assert "Recorded" not in record.of_lesson("02_other", [], "\n".join(lines[1:]))
