"""A file that is no notebook of its lesson gets a reason, and never an exception."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from unrolled_grader import intake

LESSON = "02_convolution"
CHECKS = ["im2col", "conv2d_gemm"]


def notebook(grade_id: str | None = "im2col", lesson: str | None = None) -> dict[str, Any]:
    mark = {"nbgrader": {"grade_id": grade_id}} if grade_id else {}
    about = {"unrolled": {"lesson": lesson}} if lesson else {}
    cells = [{"cell_type": "code", "metadata": mark, "source": "", "outputs": [], "execution_count": None}]
    return {"nbformat": 4, "nbformat_minor": 5, "metadata": about, "cells": cells}


def problem(data: bytes) -> str:
    return intake.content_problem(data, LESSON, CHECKS)


def as_bytes(content: Any) -> bytes:
    return json.dumps(content).encode()


@pytest.mark.parametrize(
    "content",
    [notebook(), notebook("check_conv2d_gemm"), notebook(None, LESSON), notebook("im2col", LESSON)],
)
def test_a_notebook_of_the_lesson_passes(content: dict[str, Any]) -> None:
    assert problem(as_bytes(content)) == ""


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "not valid JSON"),
        (as_bytes(notebook())[:-20], "not valid JSON"),
        (b"\0" + as_bytes(notebook()), "null bytes"),
        (b'{"cells": "\xff"}', "not UTF-8"),
        (b"[" * 200_000, "nested too deeply"),
        (b"[]", "not a notebook"),
        (as_bytes(notebook() | {"nbformat": 3}), "not a notebook"),
        (b'{"nbformat": 4, "metadata": {}, "cells": {}}', "not a notebook"),
        (b'{"nbformat": 4, "metadata": {}, "cells": [1]}', "not a notebook"),
        (b'{"nbformat": 4, "metadata": {}, "cells": [{"cell_type": "code"}]}', "not a notebook"),
        (as_bytes(notebook("merge")), "none of the exercises of 02_convolution"),
        (as_bytes(notebook(None)), "none of the exercises of 02_convolution"),
        (as_bytes(notebook("im2col", "01_matrix_parallelism")), "another lesson: 01_matrix_parallelism"),
    ],
)
def test_anything_else_is_refused_in_words(data: bytes, said: str) -> None:
    assert said in problem(data)


def place(submitted: Path, student: str, data: bytes | None, lesson: str = LESSON) -> Path:
    folder = submitted / student / lesson
    folder.mkdir(parents=True)
    file = folder / f"{lesson}.ipynb"
    if data is not None:
        file.write_bytes(data)
    return file


def test_every_submission_is_found_with_what_stands_against_it(tmp_path: Path) -> None:
    place(tmp_path, "ann", as_bytes(notebook()))
    place(tmp_path, "bob", None).with_name("other.ipynb").write_text("{}")
    place(tmp_path, "cem", b" " * (intake.MAX_BYTES + 1))
    place(tmp_path, "dan", None).symlink_to(tmp_path / "ann" / LESSON / f"{LESSON}.ipynb")
    place(tmp_path, "eve", None).mkdir()
    place(tmp_path, "fay", as_bytes(notebook()), "02_convolutions")
    found = {handed.student: handed.problem for handed in intake.find(tmp_path, {LESSON: CHECKS})}
    assert found == {
        "ann": "",
        "bob": "02_convolution.ipynb is missing; the folder holds other.ipynb",
        "cem": "the file has 10 MB, at most 10 MB are taken",
        "dan": "expected a file, not a link or folder",
        "eve": "expected a file, not a link or folder",
    }
    assert intake.strangers(tmp_path, [LESSON]) == ["fay/02_convolutions"]
    assert [handed.student for handed in intake.find(tmp_path, {LESSON: CHECKS}, "bob")] == ["bob"]


def test_the_digest_follows_notebook_and_time_stamp(tmp_path: Path) -> None:
    file = place(tmp_path, "ann", b"{}")
    first = intake.digest(file)
    assert intake.digest(file) == first
    file.with_name("timestamp.txt").write_text("2030-01-01 00:00:00 UTC")
    second = intake.digest(file)
    file.write_bytes(b"{ }")
    assert len({first, second, intake.digest(file)}) == 3
