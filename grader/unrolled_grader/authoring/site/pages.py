"""The page of a lesson: the learner's text and stubs, with the outputs of the complete lesson below them."""

from __future__ import annotations

import base64
import copy
import hashlib
import html
import io
import re
import sys
from pathlib import Path

from bs4 import BeautifulSoup, Tag
from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell, new_output
from PIL import Image

FIGURES = "figures"  # the folder of pictures, beside that of the lessons' pages
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
JOURNAL = re.compile(r"The journal is .*?journal\.json")
PNG = "data:image/png;base64,"
EXERCISE = re.compile(r"^### Exercise: (\w+)$", re.MULTILINE)
FOUND_BY_NAME = "\\g<0>\n\n```{index} ! \\1\n```"  # the search leads to the heading, "!" puts that first
SMALLEST = 560  # pixels below which a wide picture does not shrink: on a phone it scrolls, and can still be read
COLOURS = 256  # a chart has few; with a palette its file is about a third

NOTE = """\
:::{{admonition}} Reading this lesson
:class: tip

This page shows what a learner gets. Where an exercise holds only its stub, the outputs below it come from a complete
answer. All times were measured on the machine that built this page, which [the record](#the-record) names.

{{download}}`Download the notebook <{lesson}.learner.ipynb>` · [Instructor notes](../notes/{lesson}.md)
:::"""
HERE_YOUR_WORDS = "*In the notebook, your answer goes here.*"
MOVING = "<figcaption>In the notebook, sliders move this picture.</figcaption>"


def page(
    learner: NotebookNode, executed: NotebookNode, lesson: str, figures: Path, install: str = "", record: str = ""
) -> NotebookNode:
    """Return the learner's notebook with the outputs of the executed solution; write its pictures to `figures`.

    Cells are matched by their ids. Left out is how code begins to `install` the course; at the end stands the `record`.
    Raises ValueError if the two notebooks do not have the same cells.
    """
    made: NotebookNode = copy.deepcopy(learner)
    outputs = {cell.id: cell.get("outputs", []) for cell in executed.cells}
    if [cell.id for cell in made.cells] != list(outputs):
        raise ValueError(f"{lesson}: the cells of notebooks/ and solutions/ differ; run `make build`")
    for cell in made.cells:
        if cell.cell_type == "code":
            cell.source = cell.source.removeprefix(f"{install}\n")
            cell.outputs = _outputs(outputs[cell.id], figures)
        elif cell.metadata.get("nbgrader", {}).get("solution"):
            cell.source = HERE_YOUR_WORDS
        else:
            cell.source = EXERCISE.sub(FOUND_BY_NAME, cell.source)
        cell.metadata = NotebookNode()
    made.cells[0].source += "\n\n" + NOTE.format(lesson=lesson)
    made.cells.append(new_markdown_cell(record, id="record"))
    made.metadata = NotebookNode(kernelspec=learner.metadata.kernelspec, language_info=learner.metadata.language_info)
    return made


def _outputs(outputs: list[NotebookNode], figures: Path) -> list[NotebookNode]:
    """What the page shows of a cell's outputs; what was printed piece by piece is one piece."""
    shown: list[NotebookNode] = []
    for output in filter(None, (_output(output, figures) for output in outputs)):
        if shown and shown[-1].output_type == output.output_type == "stream":
            shown[-1].text += output.text
        else:
            shown.append(output)
    return shown


def _output(output: NotebookNode, figures: Path) -> NotebookNode | None:
    """An output as the page shows it; None for what only a running notebook can use, such as a progress bar."""
    data, shown = output.get("data", {}), None
    if output.output_type == "stream":
        if output.name == "stdout" and output.text.strip():
            text = JOURNAL.sub("The journal is journal.json", output.text)  # no folder of who ran it
            text = text.replace(sys.prefix, ".venv").replace(str(Path.home()), "~")
            shown = new_output("stream", name="stdout", text=text)
    elif "text/html" in data:
        source = _html(data["text/html"], figures, moving=WIDGET_VIEW in data)
        shown = new_output("display_data", data={"text/html": source})
    elif WIDGET_VIEW not in data:
        shown = copy.deepcopy(output)
    return shown


def _html(source: str, figures: Path, *, moving: bool) -> str:
    """HTML of the library without data URIs and without colours of its own, which the page's style gives."""
    soup = BeautifulSoup(source, "html.parser")
    for mark in soup.find_all("span", style=True):
        mark["class"] = f"verdict {mark.get_text().split(maxsplit=1)[-1].replace(' ', '-')}"
    for tag in soup.find_all(style=True):
        del tag["style"]
    for image in soup.find_all("img"):
        _move_out(image, figures)
    if soup.find("img") is not None and soup.find("table") is None:
        return f'<figure class="picture">{soup}{MOVING if moving else ""}</figure>'
    return f'<div class="finding">{soup}</div>'


def _move_out(image: Tag, figures: Path) -> None:
    """Write the picture that an image carries to a file, and let the image name that."""
    if not (source := str(image["src"])).startswith(PNG):
        raise ValueError(f"an output shows an image that it does not carry: {html.escape(source[:80])}")
    if not str(image.get("alt", "")).strip():
        raise ValueError("an output shows a picture without a text alternative")
    small, (width, height) = compressed(base64.b64decode(source.removeprefix(PNG)))
    file = figures / f"{hashlib.sha256(small).hexdigest()[:16]}.png"
    figures.mkdir(parents=True, exist_ok=True)
    file.write_bytes(small)
    shown = int(str(image.get("width", str(width))))
    image.attrs |= {"src": f"../{FIGURES}/{file.name}", "width": str(shown)}
    image.attrs |= {"height": str(round(height * shown / width)), "loading": "lazy"}
    image["style"] = f"min-width: {min(shown, SMALLEST)}px"


def compressed(png: bytes) -> tuple[bytes, tuple[int, int]]:
    """Return a picture as a smaller file, with a palette of 256 colours, and its width and height in pixels."""
    picture = Image.open(io.BytesIO(png)).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    buffer = io.BytesIO()
    picture.save(buffer, format="png", optimize=True)
    return buffer.getvalue(), picture.size
