"""A file that is no notebook of its lesson gets a reason, and never an exception."""

import json
import os
from pathlib import Path
from typing import Any

import nbformat
import pytest

from unrolled_grader.judge import intake, opening

LESSON = "02_convolution"
CHECKS = ["im2col", "conv2d_gemm"]


def notebook(grade_id: str | None = "im2col", lesson: str | None = None, source: Any = "") -> dict[str, Any]:
    mark = {"nbgrader": {"grade_id": grade_id}} if grade_id else {}
    about = {"unrolled": {"lesson": lesson}} if lesson else {}
    cells = [{"cell_type": "code", "metadata": mark, "source": source, "outputs": [], "execution_count": None}]
    return {"nbformat": 4, "nbformat_minor": 5, "metadata": about, "cells": cells}


def problem(data: bytes) -> str:
    try:
        opening.opened(data, LESSON, CHECKS)
    except opening.RefusedError as reason:
        return str(reason)
    return ""


def as_bytes(content: Any) -> bytes:
    return json.dumps(content).encode()


@pytest.mark.parametrize(
    "content",
    [
        notebook(),
        notebook("check_conv2d_gemm"),
        notebook(None, LESSON),
        notebook("im2col", LESSON),
        notebook(None, source="%matplotlib inline\ndef im2col(x):\n    return x"),  # Colab took every grade_id
        notebook(None, source=["import numpy\n", f"check.start('{LESSON}', '1.0.0')"]),
        notebook() | {"nbformat_minor": 0},
        notebook() | {"nbformat_minor": 99},
    ],
)
def test_a_notebook_of_the_lesson_passes(content: dict[str, Any]) -> None:
    assert problem(as_bytes(content)) == ""


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "not valid JSON"),
        (as_bytes(notebook())[:-20], "not valid JSON"),
        (b"\0" + as_bytes(notebook()), "null bytes"),
        (b'{"cells": "\xff"}', "not UTF-8"),
        (b"[" * 200_000, "nested too deeply"),
        (b'{"nbformat": ' + b"4" * 2_000 + b"}", "a whole number of 2,000 digits"),
        (b"[]", "not a notebook"),
        (as_bytes(notebook() | {"nbformat": 3}), "format 3, expected 4: open it in Jupyter and save it again"),
        (as_bytes(notebook() | {"nbformat": "\ud800"}), "format '\\ud800', expected 4: it cannot be read"),
        (as_bytes(notebook(lesson="\ud800")), "another lesson: ?"),
        (as_bytes(notebook(source="half a character: \ud800")), "cell 0 holds half of a character"),
        (as_bytes(notebook() | {"cells": [{"cell_type": "heading", "source": ""}]}), "cell 0 has the type 'heading'"),
        (as_bytes(notebook() | {"cells": notebook()["cells"] * 1001}), "1001 cells, at most 1000"),
        (as_bytes(notebook(None, source='check.start("01_matrix_parallelism")')), "another lesson: 01_matrix"),
        (as_bytes(notebook(None, source="%%writefile a.py\ndef im2col(x): ...")), "none of the exercises"),
        (b'{"nbformat": 4, "metadata": {}, "cells": {}}', "not a notebook"),
        (b'{"nbformat": 4, "metadata": {}, "cells": [1]}', "not a notebook"),
        (b'{"nbformat": 4, "metadata": {}, "cells": [{"cell_type": "code"}]}', "not a notebook"),
        (as_bytes(notebook("merge")), "none of the exercises of 02_convolution"),
        (as_bytes(notebook(None)), "none of the exercises of 02_convolution"),
        (as_bytes(notebook("im2col", "01_matrix_parallelism")), "another lesson: 01_matrix_parallelism"),
    ],
)
def test_anything_else_is_refused_in_words(data: bytes, message: str) -> None:
    assert message in problem(data)


def test_what_grading_does_not_use_costs_nothing() -> None:
    """Broken outputs, widgets, Colab's metadata, doubled cell ids: nobody sees them, and they are not graded."""
    content = notebook(source=["a = 1\n", "b = 2"])
    cell = content["cells"][0]
    cell |= {"id": "not an id!", "outputs": [{"output_type": "nonsense"}], "execution_count": "three"}
    cell["metadata"] |= {"tags": "not a list", "id": "mN1x", "colab": {"base_uri": "https://localhost/"}}
    twin = {"cell_type": "markdown", "source": "", "id": "twin", "attachments": {"a.png": {"image/png": "AAAA"}}}
    content["cells"] += [twin, twin | {"attachments": 3}]
    content["metadata"] = {"colab": {"provenance": []}, "widgets": 3, "kernelspec": {"display_name": 1}}
    nb = opening.opened(as_bytes(content), LESSON, CHECKS)
    nbformat.validate(nb)
    assert nb.cells[0].source == "a = 1\nb = 2"
    assert nb.cells[0].metadata == {"nbgrader": {"grade_id": "im2col"}}
    assert (nb.cells[0].outputs, nb.cells[0].execution_count) == ([], None)
    assert len({cell.id for cell in nb.cells}) == 3
    assert ["attachments" in cell for cell in nb.cells] == [False, True, False]


@pytest.mark.parametrize(
    ("metadata", "language"),
    [
        ({}, "python"),
        ({"kernelspec": {"name": "python3", "display_name": "Python 3"}, "colab": {}}, "python"),
        ({"kernelspec": {"name": "venv", "display_name": "mine", "language": "python"}}, "python"),
        ({"kernelspec": {"name": "ir", "display_name": "R"}}, "r"),
        ({"kernelspec": {"name": "julia-1.10", "display_name": "Julia"}}, "julia"),
        ({"kernelspec": [], "language_info": {"name": "R"}}, "r"),
    ],
)
def test_the_kernel_a_notebook_asks_for_is_known(metadata: dict[str, Any], language: str) -> None:
    nb = opening.opened(as_bytes(notebook() | {"metadata": metadata}), LESSON, CHECKS)
    assert nb.metadata.kernelspec.language == language


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("%matplotlib inline\n!ls\nfiles = !ls\nprint?\ndef f(x):\n    g = 1\n    return x", {"f", "files"}),
        ("%%time\ndef f(x): return x", {"f"}),
        ("%%writefile f.py\ndef f(x): return x", set()),
        ("await g()\nif True:\n    import f.g as f\nelse:\n    class h: pass", {"f", "h"}),
        ("try:\n    %time k = 1\nexcept ValueError:\n    f, (g, *h) = 1, (2,)\n    f.k = x[y] = 3", {*"fghx"}),
        ("for i, j in k: l += 1\nwith m as (n, o.p): pass\ndel q, r[0]", {*"ijlno"}),
        ("x = (7\n % 4)", {"x"}),
        ("def f(:", set()),
        ("+".join("1" * 60_000), set()),
        ("-" * 100_000, set()),
        ("\n" * 150_000 + "def f(:", set()),
    ],
)
def test_the_names_that_a_cell_binds(source: str, names: set[str]) -> None:
    assert opening.bound(source) - {"files"} == names - {"files"}


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("def f(x: t):\n    'w'\n    y = x + g  # w\n    return [h(z) for z in y]", {*"fght"}),
        ("class C(D):\n    e = f'{g} h'\na.b += eval('i + j')\n'w'", {*"CDghaij", "eval"}),
        ("%time f(x)  # x", {*"fx", "time"}),
        ("def f(:", {*"f", "def"}),
        ("+".join("1" * 60_000), {"1"}),
        ("-" * 100_000, set()),
    ],
)
def test_the_names_that_a_cell_uses(source: str, names: set[str]) -> None:
    assert opening.used(source) == names


def test_no_more_is_kept_than_one_notebook_binds() -> None:
    """A class may hand in gigabytes of cells."""
    for number in range(3):
        opening.bound(f"x{number} = 1")
        problem(json.dumps(notebook()).encode())
    assert opening.bound.cache_info().currsize <= 1


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
    os.mkfifo(place(tmp_path, "gil", None))
    (tmp_path / "hal").mkdir()
    (tmp_path / "hal" / LESSON).symlink_to(tmp_path / "ann" / LESSON)
    place(tmp_path, "fay", as_bytes(notebook()), "02_convolutions")
    found = {handed.student: handed.problem for handed in intake.find(tmp_path, {LESSON: CHECKS})}
    assert found == {
        "ann": "",
        "bob": "02_convolution.ipynb is missing; the folder holds other.ipynb",
        "cem": "the file has 10 MB, at most 10 MB are taken",
        "dan": "expected a file, not a link or folder",
        "eve": "expected a file, not a link or folder",
        "gil": "expected a file, not a link or folder",
        "hal": "02_convolution is a link, expected a folder",
    }
    assert intake.strangers(tmp_path, [LESSON]) == ["fay/02_convolutions"]
    for name in (f"{LESSON}.ipynb", f"gus/{LESSON}.ipynb", f"fay/{LESSON}/deeper/{LESSON}.ipynb", ".x/a.ipynb"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"{}")
    passed_over = intake.strangers(tmp_path, [LESSON])
    assert [name.partition(" ")[0] for name in passed_over if "in the wrong place; expected" in name] == [
        f"{LESSON}.ipynb",
        f"fay/{LESSON}/deeper/{LESSON}.ipynb",
        f"gus/{LESSON}.ipynb",
    ]
    assert [handed.student for handed in intake.find(tmp_path, {LESSON: CHECKS}, "bob")] == ["bob"]


def test_the_digest_follows_the_notebook_and_not_its_time(tmp_path: Path) -> None:
    file = place(tmp_path, "ann", b"{}")
    first = intake.digest(file)
    assert intake.digest(file) == first
    file.with_name("timestamp.txt").write_text("2030-01-01 00:00:00 UTC")
    assert intake.digest(file) == first
    file.write_bytes(b"{ }")
    assert intake.digest(file) != first


def test_a_time_stamp_is_short_text_or_nothing(tmp_path: Path) -> None:
    file = place(tmp_path, "ann", b"{}").with_name("timestamp.txt")
    secret = tmp_path / "secret"
    secret.write_text("secret")
    stamps = [intake.time_stamp(file.parent)]
    file.symlink_to(secret)
    stamps.append(intake.time_stamp(file.parent))
    linked = intake.digest(file.with_name(f"{LESSON}.ipynb"))
    secret.write_text("changed")
    assert intake.digest(file.with_name(f"{LESSON}.ipynb")) == linked
    file.unlink()
    os.mkfifo(file)
    stamps.append(intake.time_stamp(file.parent))
    file.unlink()
    file.write_text("2030-01-01 00:00:00 UTC\n")
    assert [*stamps, intake.time_stamp(file.parent)] == ["", "", "", "2030-01-01 00:00:00 UTC\n"]
    file.write_text("x" * 1000)
    assert intake.time_stamp(file.parent) == ""


@pytest.mark.parametrize("line", [" ", "\t", "a ", "a, ", " =", "a= ", "a.", "'", "check.start("])
def test_a_cell_is_read_in_time_that_grows_with_its_length(line: str) -> None:
    """Spaces and a bracket took minutes: the time grew with the square of a line's length."""
    source = (line * opening.PARSED)[: opening.PARSED - 1] + ")"
    assert opening.ESCAPE.sub("", source) == source
    assert opening.bound(f"{source}\n") == frozenset()
    assert "none of the exercises" in problem(as_bytes(notebook(None, source=source)))


def test_a_long_chain_of_conditions_is_read() -> None:
    """It is nested as deeply as it is long."""
    assert opening.bound("if a: b = 1\n" + "elif a: pass\n" * 1_200 + "else: c = 2") == {"b", "c"}


def test_each_cell_is_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many exercises ask what it binds."""
    parsed: list[str] = []
    tree = opening._tree
    monkeypatch.setattr(opening, "_tree", lambda source: parsed.append(source) or tree(source))
    source = "im2col = 1  # of test_each_cell_is_parsed_once"
    assert opening.bound(source) == opening.bound(source) == {"im2col"}
    assert parsed == [source]


@pytest.mark.parametrize(
    "line", ["%time f()", "  !ls", "files = !ls", "a, b = %sx ls", "f?", "np.sum??", "?f", "x=%who"]
)
def test_what_only_ipython_understands_is_passed_over(line: str) -> None:
    indent = "if x:\n" if line.startswith(" ") else ""
    assert "im2col" in opening.bound(f"{indent}{line}\ndef im2col(x): pass")


VALID = ("ann", "abc", "O'Neil, Ünal", "山田 太郎@uni.edu", "{x}%s", "a\\nb]", "=1.", "\u0645\u06cc\u200c\u062e")
ODD = ("a\nb", " ann", "ann ", "abc\u00a0", "[abc]", "a*", "?", "*", "tab\tbed", "cba\u202e", "bom\ufeff", "\u2028",
       " ", "Zoe\u0308", "Zo\u00eb", "A  B", "A B", "raw\udcff")  # fmt: skip
"""Among them two pairs that look the same."""


def test_names_of_folders_that_nbgrader_or_a_reader_would_misread_are_odd() -> None:
    assert sorted(intake.odd([*VALID, *ODD])) == sorted(ODD)
    assert intake.odd(["Ann", "ann", "l" * 255, "-x", "#1", "$(ls)", "a..", "x+y@uni.edu"]) == {}
    assert intake.odd(["=1", "'=1"]).keys() == {"=1", "'=1"}  # scores.csv has a ' before what may be a formula
