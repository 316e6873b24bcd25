"""A submission's feedback page, for `nbgrader generate_feedback`, formgrader's button and `unrolled grade` alike.

grader/nbgrader_config.py makes `Feedback` GenerateFeedback's exporter, in place of nbconvert's HTML with nbgrader's
template: that runs what students display, and loads MathJax and more from elsewhere. This page needs nothing but
itself and has no script. What the judge found stands in frames that nothing of a student's can have.
"""

from __future__ import annotations

import functools
import html
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from nbconvert.exporters import Exporter
from nbformat import NotebookNode
from pygments import highlight  # type: ignore[import-untyped]
from pygments.formatters import HtmlFormatter  # type: ignore[import-untyped]
from pygments.lexers import PythonLexer  # type: ignore[import-untyped]
from pygments.token import Comment  # type: ignore[import-untyped]
from traitlets import default

from unrolled.notebook.cells import mark
from unrolled_grader.judge.evidence import CELL
from unrolled_grader.judge.outputs import MARK
from unrolled_grader.results import inert, pictures

PAGE_LIMIT = 5_000_000  # characters of outputs on one page
SOURCE_LIMIT = 5_000
"""Characters of a code cell that are shown in colour: for some text the lexer's time grows with their square. A longer
text is not kept as HTML, either."""
COLOURED_LIMIT = 200_000  # characters that are shown in colour on one page; a lesson has 21,000
EFFORT_LIMIT = 10**9
"""Of parsing a page's markdown and HTML, as `inert.effort` counts it: some fifteen seconds of the worst there is."""
RICH = ("text/html", "text/markdown")
CELLS_KEPT = 256  # cells that are kept as HTML: most of a class are as they were handed out

STYLE = Path(__file__).with_suffix(".css").read_text(encoding="utf-8")
ANSI = {"black": "#222", "red": "#b3261e", "green": "#00684b", "yellow": "#7a5900", "blue": "#0059a8",
        "magenta": "#8b3a75", "cyan": "#00606b", "white": "#666"}  # fmt: skip


class Feedback(Exporter):
    """Turns a notebook with its grades, as nbgrader's GetGrades leaves them, into one page of HTML."""

    export_from_notebook = "Feedback"
    output_mimetype = "text/html"

    @default("file_extension")
    def _file_extension_default(self) -> str:
        return ".html"

    def from_notebook_node(  # type: ignore[override]
        self, nb: NotebookNode, resources: dict[str, Any] | None = None, **others: Any
    ) -> tuple[str, dict[str, Any]]:
        """Return the page, and nbconvert's resources."""
        graded, resources = super().from_notebook_node(nb, resources, **others)
        return page(graded, resources.get("nbgrader", {})), resources


def page(nb: NotebookNode, grades: dict[str, Any]) -> str:
    """Return the whole page. `grades` is what GetGrades tells: notebook, score, max_score, late_penalty."""
    name = str(grades.get("notebook", "Feedback"))
    body = f"{_head(nb, html.escape(name), grades)}\n<main>{''.join(_cells(nb))}</main>"
    return inert.document(name, STYLE + _colours(), body)


def _head(nb: NotebookNode, name: str, grades: dict[str, Any]) -> str:
    rows = [
        (f'<a href="#cell-{index}">{_title(cell)}</a>', _points(cell))
        for index, cell in enumerate(nb.cells)
        if mark(cell).get("grade")
    ]
    late = float(grades.get("late_penalty") or 0)
    penalty = f'<p class="late">Handed in late: {_number(late)} points less.</p>' if late else ""
    score = f"{_number(max(0.0, float(grades.get('score') or 0)))} of {_number(grades.get('max_score'))} points"
    return (
        f"<header><h1>{name}: {score}</h1>{penalty}"
        "<p>What the judge found stands in blue frames. Dotted lines hold what the notebook itself displayed. "
        "Code of the course that no check needs was not run.</p>"
        f"{inert.table(('graded', 'points'), rows)}</header>"
    )


@dataclass
class _Room:
    """What is left of a page's limits."""

    shown: int
    coloured: int
    effort: int

    def affords(self, *texts: str) -> bool:
        """Whether these may be parsed as markdown or HTML; what they take is gone then."""
        effort = inert.effort(*texts)
        if effort > self.effort:
            return False
        self.effort -= effort
        return True


def _cells(nb: NotebookNode) -> Iterator[str]:
    room = _Room(PAGE_LIMIT, COLOURED_LIMIT, EFFORT_LIMIT)
    for index, cell in enumerate(nb.cells):
        graded = f'<p class="graded">{_title(cell)}: {_points(cell)} points</p>' if mark(cell).get("grade") else ""
        yield f'<section id="cell-{index}">{graded}{_source(cell, room)}'
        for output in cell.get("outputs", ()):
            shown = _output(output, room)
            room.shown -= len(shown)
            yield shown
        if comment := mark(cell).get("comment"):
            yield f'<div class="comment"><h3>Comment</h3>{inert.markdown(comment)}</div>'
        yield "</section>\n"


def _source(cell: NotebookNode, room: _Room) -> str:
    text: str = cell.source
    if cell.cell_type == "markdown":
        words = pictures.SOURCE.sub("", text)
        if not room.affords(words):
            markup = inert.terminal(words)
        else:
            shared = words == text and len(text) <= SOURCE_LIMIT
            markup = _markdown(text) if shared else inert.markdown(text, cell.get("attachments"))
        return f'<div class="markdown held">{markup}</div>'
    if cell.cell_type != "code" or len(text) > min(SOURCE_LIMIT, room.coloured):
        return f'<div class="code held">{inert.terminal(text)}</div>'
    room.coloured -= len(text)
    return f'<div class="code held">{_coloured(inert.UNPRINTABLE.sub("�", text))}</div>'


class _Lexer(PythonLexer):  # type: ignore[misc]
    """Python, with IPython's magics and shell commands. What other languages stand in a cell is not looked at."""

    tokens: ClassVar[Any] = {
        **PythonLexer.tokens,
        "root": [(r"^[ \t]*[%!].*\n", Comment.Preproc), *PythonLexer.tokens["root"]],
    }


@functools.lru_cache(CELLS_KEPT)
def _coloured(source: str) -> str:
    markup: str = highlight(source, _Lexer(), HtmlFormatter(cssclass="highlight"))
    return markup


_markdown = functools.lru_cache(CELLS_KEPT)(inert.markdown)


def _output(output: NotebookNode, room: _Room) -> str:
    if MARK.items() <= output.get("metadata", {}).items():  # that of whatever a notebook displays is dropped
        return f'<div class="judge"><h3>The judge</h3>{inert.terminal(output.data["text/plain"])}</div>'
    shown = inert.output(_affordable(output, room)) if room.shown > 0 else inert.NOT_SHOWN
    shown = shown if len(shown) <= room.shown else inert.NOT_SHOWN
    return f'<div class="out"><p class="label">displayed by the notebook</p><div class="held">{shown}</div></div>'


def _affordable(output: NotebookNode, room: _Room) -> NotebookNode:
    """The output, without HTML and markdown where a picture goes before them or parsing them would take too long."""
    data = output.get("data", {})
    rich = [str(data[kind]) for kind in RICH if kind in data]
    if not rich or (not any(kind in data for kind in inert.PICTURES) and room.affords(*rich)):
        return output
    return NotebookNode({**output, "data": {kind: text for kind, text in data.items() if kind not in RICH}})


def _title(cell: NotebookNode) -> str:
    """What a graded cell is called: the check's name, or the name of an answer in words."""
    return html.escape(str(mark(cell).get("grade_id", "")).removeprefix(CELL))


def _points(cell: NotebookNode) -> str:
    marks = mark(cell)
    return f"{_number(marks.get('score'))} of {_number(marks.get('points'))}"


def _number(value: Any) -> str:
    return f"{round(float(value or 0), 2):g}"


def _colours() -> str:
    """The colours of code, and of terminals' text."""
    terminal = (f".ansi-{name}-fg, .ansi-{name}-intense-fg {{ color: {hue}; }}" for name, hue in ANSI.items())
    bold = ".ansi-bold { font-weight: bold; } .ansi-underline { text-decoration: underline; }"
    return f"{HtmlFormatter(style='xcode').get_style_defs('.code')}\n{bold}\n{chr(10).join(terminal)}\n"
