"""The file to hand in: what goes in comes out, and whatever else comes in is named, not believed."""

import contextlib
import io
import json
import re
import zipfile

import pytest

import unrolled
from unrolled.notebook import handin

NOTEBOOK = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [{"cell_type": "markdown", "source": "Grüße"}]}
BYTES = json.dumps(NOTEBOOK).encode()
JOURNAL = {"format": "unrolled-journal", "checks": {}}


def made(notebook=BYTES, student="ada", lesson="02_convolution", journal=JOURNAL):
    return handin.make(notebook, journal, student, lesson)


def again(data, **changes):
    """The same zip with some files replaced (None takes one out, a function changes handin.json)."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    for name, content in changes.items():
        name = {"about": "handin.json", "journal": "journal.json", "notebook": "02_convolution.ipynb"}.get(name, name)
        if callable(content):
            about = json.loads(files[name])
            content(about)
            content = json.dumps(about).encode()
        files[name] = content
    return zipped((name, content) for name, content in files.items() if content is not None)


def zipped(files, method=zipfile.ZIP_DEFLATED):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        for name, content in files:
            archive.writestr(name, content)
    return stream.getvalue()


def test_what_is_handed_in_comes_out_again():
    read, other = handin.read(made()), handin.read(made())
    assert (read.lesson, read.student, read.course) == ("02_convolution", "ada", unrolled.__version__)
    assert read.notebook == BYTES, "a notebook without large outputs stays as it is, byte for byte"
    assert read.journal == JOURNAL
    assert read.made.tzinfo is not None
    assert read.dropped == ()
    assert handin.read(made(NOTEBOOK)).notebook.decode().count("Grüße") == 1
    assert read.nonce != other.nonce, "it tells a file"
    assert read.digest == other.digest != handin.read(made({**NOTEBOOK, "nbformat_minor": 4})).digest


def test_only_large_outputs_are_left_out_and_named():
    output = {"output_type": "stream", "name": "stdout"}
    outputs = [{**output, "text": "small"}, {**output, "text": "x" * 1_100_000}]
    cell = {"cell_type": "code", "source": "print()", "outputs": outputs}
    nb = {**NOTEBOOK, "cells": [*NOTEBOOK["cells"], cell]}
    read = handin.read(made(json.dumps(nb).encode()))
    assert read.dropped == ("an output of cell 2, 1.1 MB",)
    kept = json.loads(read.notebook)["cells"][1]
    assert kept["source"] == "print()"
    assert [output["text"] for output in kept["outputs"]] == ["small", "[an output of 1.1 MB was left out]\n"]
    assert len(cell["outputs"][1]["text"]) == 1_100_000, "the learner's own is not changed"


def nested(depth):
    """Objects in one another."""
    return {"a": nested(depth - 1)} if depth else {}


NO_NOTEBOOKS = (b"", b"\xff\x00", b"[]", b"{}", b'{"cells": [3]}', b'{"cells": [], "metadata": 1}')
LARGE = {**NOTEBOOK, "cells": [{"cell_type": "code", "source": "x" * 10_000_001}]}
REFUSED = [
    *(({"notebook": bad}, "notebook") for bad in NO_NOTEBOOKS),
    *(({"lesson": lesson}, "lesson") for lesson in ("", "../x", "a b", "a" * 81)),
    ({"notebook": LARGE}, "10.0 MB without its outputs"),
    ({"journal": {"a": "x" * 5_000_000}}, "5.0 MB"),
    ({"journal": nested(60)}, "nested"),
]


@pytest.mark.parametrize(("given", "words"), REFUSED, ids=range(len(REFUSED)))
def test_what_is_not_handed_in(given, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        made(**given)


NO_IDS = ["", " ", ".", "..", ".ada", "-ada", "ada.", "a/b", "a\\b", "a b", "a\nb", "a:b", "a+b"]
NO_IDS += ["x" * 65, "nul", "CON.x", "com\u00b9"]


def test_ids_that_can_be_folders_and_ids_that_cannot():
    for name in ("ada", "s12345", "ada.lovelace", "ada@example.org", "0", "山田", "a-b_c", "  ada "):
        assert handin.student_id(name) == name.strip()
    assert handin.student_id("Gu\u0308nter") == "G\u00fcnter"  # composed
    for name in NO_IDS:
        with pytest.raises(ValueError, match=re.escape(repr(name))):
            handin.student_id(name)


def put(**entries):
    return lambda about: about.update(entries)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"about": None}, "handin.json is missing"),
        ({"journal": None}, "must hold"),
        ({"notebook": None}, "must hold"),
        ({"../evil.ipynb": b"x", "journal": None}, "must hold"),
        ({"extra": b"x"}, "holds 4"),
        ({"about": b"{"}, "not readable"),
        ({"about": b"[]"}, "no object"),
        ({"about": b"[" * 50_000}, "not readable"),
        ({"journal": b"\xff"}, "journal.json is not readable"),
        ({"notebook": b"{}"}, "was changed"),
        ({"about": put(format="other")}, "format 'other'"),
        ({"about": put(version=2)}, "version 2, expected 1"),
        ({"about": put(student="../ada")}, "cannot be a student's id"),
        ({"about": put(student=7)}, "no readable student"),
        ({"about": put(course="x" * 201)}, "no readable course"),
        ({"about": put(lesson="../x")}, "which cannot be one"),
        ({"about": put(lesson="03_pooling")}, "must hold 03_pooling.ipynb"),
        ({"about": put(nonce="7")}, "no readable nonce"),
        ({"about": put(digest="7")}, "no readable digest"),
        ({"about": put(made="yesterday")}, "no time"),
        ({"about": put(made="2027-01-15T10:00:00")}, "without a time zone"),
        ({"about": put(dropped=3)}, "no readable dropped"),
        ({"about": put(made="9999-12-31T23:59:59-23:59")}, "in the year 9999"),  # in no other time zone is it a time
        ({"about": put(made="0001-01-01T00:00:00+23:59")}, "in the year 1,"),
        ({"about": put(dropped=[[[[[[nested(60)]]]]]])}, "handin.json is nested more than 50"),
        ({"journal": json.dumps(nested(900)).encode()}, "journal.json is nested more than 50"),
    ],
)
def test_what_is_wrong_is_said(changes, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        handin.read(again(made(), **changes))


def test_a_bomb_is_not_unpacked():
    for name, size in {"handin.json": 200_000, "journal.json": 6_000_000, "02_convolution.ipynb": 11_000_000}.items():
        bomb = again(made(), **{name: b" " * size})
        assert len(bomb) < 100_000
        with pytest.raises(ValueError, match=f"{re.escape(name)}' unpacks to more than"):
            handin.read(bomb)


def test_broken_and_odd_files_are_refused():
    data = made()
    for broken in (b"", b"PK", data[:-30], data[:100] + b"\x00" * 50 + data[150:], b"x" * 20_000_001):
        with pytest.raises(ValueError, match=r"zip|MB|hand-in|changed|readable"):
            handin.read(broken)
    lies = again(data, journal=b" " * 6_000_000).replace((6_000_000).to_bytes(4, "little"), (10).to_bytes(4, "little"))
    with pytest.raises(ValueError, match=r"no readable zip|unpacks"):
        handin.read(lies)
    with pytest.warns(UserWarning, match="Duplicate"):
        twice = zipped([("handin.json", b"{}"), ("handin.json", b"{}")])
    with pytest.raises(ValueError, match="holds three files"):
        handin.read(twice)
    with pytest.raises(ValueError, match="packed in a way"):
        handin.read(zipped([("handin.json", b"{}")], zipfile.ZIP_LZMA))


def test_no_byte_that_is_turned_gets_through_or_raises_otherwise():
    data = made()
    for place in range(len(data)):
        turned = data[:place] + bytes([data[place] ^ 0x15]) + data[place + 1 :]
        with contextlib.suppress(ValueError):
            assert handin.read(turned).notebook == BYTES
