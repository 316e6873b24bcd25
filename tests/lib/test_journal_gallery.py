"""Ladders given by choice: only the rungs go, nobody's is lost, and they can be compared."""

import json

import pytest

from unrolled import cli, journal
from unrolled.journal import galleries

pytestmark = pytest.mark.usefixtures("home")


@pytest.fixture
def learner(home, monkeypatch):
    """Become somebody with a ladder of one's own."""

    def become(name, *rungs):
        monkeypatch.setenv("UNROLLED_JOURNAL", str(home / f"{name}.json"))
        for label, seconds in rungs:
            journal.rung(label, "convolution", seconds, batch=8)

    return become


LOOPS, PRODUCT = ("plain loops", 90.0), ("one product", 0.5)


def test_only_the_rungs_are_given(home, learner):
    with pytest.raises(ValueError, match="no rung to give yet"):
        journal.give("gallery.json", name="moss")
    learner("zoe", LOOPS, PRODUCT)
    for name in ("", "  ", "x" * 41, "a\nb", "a\x00"):
        with pytest.raises(ValueError, match="name must be"):
            journal.give("gallery.json", name=name)
    assert sorted(file.name for file in home.iterdir()) == ["zoe.json"]
    journal.student("s12345")
    journal.predict("conv2d_gemm", 40)
    journal.give("gallery.json", name="moss")
    text = (home / "gallery.json").read_text()
    (ladder,) = json.loads(text)["ladders"]
    assert set(ladder) == {"name", "key", "rungs"}
    assert ladder["name"] == "moss"
    assert all(set(rung) == {"label", "what", "seconds", "batch", "precision", "hardware"} for rung in ladder["rungs"])
    for word in ("s12345", "conv2d_gemm", "zoe"):  # no hexadecimal digits, which the key is made of
        assert word not in text


def test_several_people_share_a_file_and_each_may_give_again(home, learner):
    learner("ada", LOOPS)
    journal.give("gallery.json", name="moss")
    learner("bob", LOOPS)
    with pytest.raises(ValueError, match="somebody gave a ladder as 'moss' already"):
        journal.give("gallery.json", name="moss")
    journal.give("gallery.json", name="fern")
    learner("ada", PRODUCT)
    journal.give("gallery.json", name="lichen")
    ladders = galleries.read(home / "gallery.json")
    assert [(one["name"], len(one["rungs"])) for one in ladders] == [("fern", 1), ("lichen", 2)]


RUNG = {"label": "loops", "what": "work", "seconds": 1.0}
LADDER = {"name": "moss", "key": "1", "rungs": [RUNG]}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "not a gallery"),
        ("[]", "not a gallery of this course"),
        ('{"format": "unrolled-journal"}', "not a gallery of this course"),
        (json.dumps({**galleries.document([]), "version": 2}), "version 2, expected 1"),
        *[
            (json.dumps(galleries.document([bad])), "damaged gallery")
            for bad in (
                3,
                {**LADDER, "name": ""},
                {**LADDER, "key": None},
                {**LADDER, "rungs": [{**RUNG, "seconds": 0}]},
                {**LADDER, "rungs": [{**RUNG, "seconds": "1"}]},
                {**LADDER, "rungs": [{"seconds": 1.0}]},
            )
        ],
    ],
)
def test_a_file_that_is_no_gallery_stays_as_it_is(home, learner, content, words):
    (home / "other.json").write_text(content, encoding="utf-8")
    learner("ada", LOOPS)
    with pytest.raises(ValueError, match=words):
        journal.give("other.json", name="moss")
    assert (home / "other.json").read_text(encoding="utf-8") == content


def test_files_are_merged_by_whose_ladder_it_is():
    old = {**LADDER, "name": "moss"}
    new = {**LADDER, "name": "lichen", "rungs": [RUNG, {**RUNG, "label": "product"}]}
    other = {**LADDER, "key": "2", "name": "lichen"}
    for files in ([[old], [new, other]], [[new, other], [old]]):
        assert [(one["name"], len(one["rungs"])) for one in galleries.merged(files)] == [
            ("lichen", 2),
            ("lichen (2)", 1),
        ]


def test_a_restored_journal_is_still_the_same_persons(home, learner):
    learner("ada", LOOPS)
    journal.give("gallery.json", name="moss")
    learner("elsewhere", PRODUCT)
    journal.restore(home / "ada.json")
    journal.give("gallery.json", name="moss")
    assert [len(one["rungs"]) for one in galleries.read(home / "gallery.json")] == [2]


def test_the_command_compares_merges_and_names_what_it_left_out(home, learner, capsys):
    learner("ada", LOOPS, PRODUCT)
    journal.give("a.json", name="moss")
    learner("bob", LOOPS)
    journal.give("b.json", name="fern")
    (home / "c.json").write_text("{")
    given = [f"{name}.json" for name in "abcd"]
    assert cli.main(["gallery", *given, "--to", "all.json", "--picture", "all.png"]) == 0
    out = capsys.readouterr().out.splitlines()
    start = out.index("convolution")
    assert out[start : start + 3] == [
        "convolution",
        "  moss     500 ms  one product   180 times from slowest to fastest",
        "  fern       90 s  plain loops",
    ]
    assert sum(line.startswith("left out: ") for line in out) == 2
    assert len(galleries.read(home / "all.json")) == 2
    assert (home / "all.png").read_bytes().startswith(b"\x89PNG")
    assert cli.main(["gallery", "c.json"]) == 1
