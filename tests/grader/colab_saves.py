"""Notebooks as Colab saves them, made by code, with what happens to a learner's cells there."""

import copy
import json
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from nbformat import NotebookNode

from unrolled.notebook.cells import grade_id

Cells = list[dict[str, Any]]

DATA_TABLE = {
    "output_type": "execute_result",
    "execution_count": 7,
    "metadata": {},
    "data": {
        "text/plain": ["   a\n", "0  1"],
        "text/html": ['<div id="df-1" class="colab-df-container"><script>google.colab.kernel</script></div>'],
        "application/vnd.google.colaboratory.intrinsic+json": {"type": "dataframe", "variable_name": "df"},
    },
}
BROKEN_WIDGETS = {"application/vnd.jupyter.widget-state+json": {"602f": {"model_name": "HTMLModel"}}}
"""Without the key "state", which the format demands: nbformat and GitHub refuse such a file."""


def saved(notebook: NotebookNode, change: Callable[[Cells], Cells] = list, *, minor: int = 0) -> bytes:
    """The bytes that Colab writes of a notebook after `change` was made to its cells."""
    cells = change([_cell(number, cell) for number, cell in enumerate(notebook.cells)])
    about = {
        "colab": {"provenance": [], "toc_visible": True, "gpuType": "T4"},
        "accelerator": "GPU",
        "kernelspec": {"name": "python3", "display_name": "Python 3"},
        "language_info": {"name": "python"},
        "widgets": BROKEN_WIDGETS,
    }
    content = {"nbformat": 4, "nbformat_minor": minor, "metadata": about, "cells": cells}
    return json.dumps(content, indent=2, ensure_ascii=False).encode()


def _cell(number: int, cell: NotebookNode) -> dict[str, Any]:
    """A cell with its id moved into the metadata, its text in lines, and a data table where it ran."""
    mark = {"nbgrader": cell.metadata["nbgrader"]} if grade_id(cell) else {}
    shown = {"colab": {"base_uri": "https://localhost:8080/", "height": 35}, "outputId": f"04eb7396-{number}"}
    made: dict[str, Any] = {"cell_type": cell.cell_type, "source": cell.source.splitlines(keepends=True)}
    made["metadata"] = {"id": f"kV{number}w7y", **mark, **(shown if cell.cell_type == "code" else {})}
    if cell.cell_type == "code":
        made |= {"execution_count": None, "outputs": [copy.deepcopy(DATA_TABLE)]}
    return made


def without_marks(cells: Cells) -> Cells:
    """Every grade_id lost, as when cells are copied into a new notebook."""
    for cell in cells:
        cell["metadata"].pop("nbgrader", None)
    return cells


def without_counts(cells: Cells) -> Cells:
    """Without the keys that the format demands of code cells, as after "clear all outputs" in some versions."""
    for cell in cells:
        cell.pop("execution_count", None)
        cell.pop("outputs", None)
    return cells


def split(cells: Cells) -> Cells:
    """Each answer split below its first line of imports; Colab leaves the grade_id with the upper half."""
    found: Cells = []
    for cell in cells:
        if name_of(cell) in ("double", "total"):
            upper, lower = copy.deepcopy(cell), copy.deepcopy(cell)
            upper["source"] = ["import math  # the upper half"]
            lower["metadata"] = {"id": f"{cell['metadata']['id']}x"}
            found += [upper, lower]
        else:
            found.append(cell)
    return found


def reordered(cells: Cells) -> Cells:
    """The second exercise and its check above the first; the imports stay on top."""
    at = next(index for index, cell in enumerate(cells) if name_of(cell) == "double")
    middle = [cell for cell in cells if name_of(cell) in ("total", "check_total")]
    rest = [cell for cell in cells if cell not in middle]
    return [*rest[:at], *middle, *rest[at:]]


def copied(cells: Cells) -> Cells:
    """An untouched copy of the answers' cells at the end, with their ids: from a copied section."""
    stubs = copy.deepcopy([cell for cell in cells if name_of(cell) in ("double", "total")])
    for cell in stubs:
        cell["source"] = ["\n"]
    return [*cells, *stubs]


def made_text(cells: Cells) -> Cells:
    """A check's cell turned into text by one key."""
    for cell in cells:
        if name_of(cell) == "check_double":
            cell["cell_type"] = "markdown"
            cell.pop("outputs")
            cell.pop("execution_count")
    return cells


def name_of(cell: Mapping[str, Any]) -> str:
    """The grade_id of a saved cell, or an empty string."""
    name: str = cell["metadata"].get("nbgrader", {}).get("grade_id", "")
    return name


SAMPLES: Mapping[str, Callable[[Cells], Cells]] = MappingProxyType(
    {
        "as it is": list,
        "without marks": without_marks,
        "without counts": without_counts,
        "split": split,
        "split, without marks": lambda cells: without_marks(split(cells)),
        "reordered": reordered,
        "reordered, without marks": lambda cells: without_marks(reordered(cells)),
        "copied": copied,
        "made text": made_text,
    }
)
