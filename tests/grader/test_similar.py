"""Near-copies are found whatever their names, honest work and handed-out text are not taken for them, no code runs."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest
from small_course import LESSON, SPECS, answered, hand_in

from unrolled import cli
from unrolled_grader.grading import Grading
from unrolled_grader.results import near_copies, similar_page
from unrolled_grader.results.near_copies import OPS, SOLUTION, Found, WrittenCode, compare, own

STUB = '''\
def total(x):
    """Return the sum of x.

    x is (N,).
    """
    raise NotImplementedError
'''
LOOP = """\
    result = 0.0  # running
    for place, number in enumerate(x):
        if number != 0:
            result = result + float(number) * 1.0
        elif place > len(x):
            raise ValueError(f"{place} is too many")
    return np.float32(result)
"""
RENAMED = """\
    s = 0.0
    for k, value in enumerate(data):
        # another comment
        if value != 0:
            s = s + float(value) * 1.0
        elif k > len(data):
            raise ValueError(f"{k} is too many")
    return np.float32(s)
"""
OTHER = """\
    halves = [x[: len(x) // 2], x[len(x) // 2 :]]
    while len(halves) > 1:
        halves.append(np.add.reduce(halves.pop()) + halves.pop().sum())
    mean, spread = halves[0] / max(x.size, 1), x.std() ** 2
    assert spread >= 0 or np.isnan(mean), (mean, spread)
    return halves[0].astype("float32")
"""


def work(who: str, *parts: str) -> WrittenCode:
    return WrittenCode(who, tuple((f"exercise{place}", part) for place, part in enumerate(parts)))


def found(*works: WrittenCode, others: tuple[WrittenCode, ...] = ()) -> Found:
    return compare(LESSON, works, [], others)


def test_a_copy_with_other_names_and_comments_is_found_and_honest_work_is_not():
    result = found(work("ann", LOOP), work("ben", OTHER), work("eve", RENAMED))
    nearest = result.pairs[0]
    assert {nearest.first.work.who, nearest.second.work.who} == {"ann", "eve"}
    assert nearest.score == 1
    assert nearest.letters < 0.3
    assert result.pairs[1].score < 0.3
    assert result.median == result.pairs[1].score


def test_a_copy_among_other_code_counts_by_the_one_that_was_copied():
    (pair,) = found(work("ann", LOOP), work("eve", OTHER * 2 + LOOP)).pairs
    assert pair.first.share == pair.score == 1
    assert pair.second.share < 0.5
    assert pair.letters == 1


def test_what_is_in_both_is_marked_and_nothing_else():
    (pair,) = found(work("ann", OTHER, LOOP), work("eve", RENAMED.replace("data", "x"))).pairs
    (_, other), (_, loop) = near_copies.marked(pair.first, pair.second.work)
    assert not any(both for _, pieces in other for both, _ in pieces)
    assert "".join(text for _, pieces in loop for _, text in pieces) == LOOP
    in_both = "".join(text for _, pieces in loop for both, text in pieces if both)
    assert "enumerate(x)" in in_both
    assert not any(pieces[0][0] for _, pieces in loop)  # an indent is not marked
    assert [line for line, (same, _) in zip(LOOP.split("\n"), loop, strict=False) if same] == []


def test_code_that_breaks_the_comparison_is_set_aside_alone(monkeypatch: pytest.MonkeyPatch):
    def fragile(work: WrittenCode) -> object:
        if work.who == "eve":
            raise RuntimeError("no token")
        return fingerprint(work)

    fingerprint = near_copies.fingerprint
    monkeypatch.setattr(near_copies, "fingerprint", fragile)
    found = compare(LESSON, [WrittenCode(who, (("total", LOOP),)) for who in ("ann", "eve", "ben")], [], [])
    assert [work.who for work in found.works] == ["ann", "ben"]
    assert found.passed_over == (("eve", "its code cannot be read: no token"),)


def test_too_little_to_tell_is_set_aside():
    result = found(work("ann", "    return x.sum()\n"), work("ben", "    return x.sum()\n"), work("eve", LOOP))
    assert result.pairs == ()
    assert [who for who, _ in result.passed_over] == ["ann", "ben"]


@pytest.mark.parametrize(
    ("source", "own_lines"),
    [
        (STUB, ""),
        (STUB.replace("    raise NotImplementedError\n", LOOP), LOOP),
        (STUB.replace("Return the sum", "Gives the sum").replace("    raise NotImplementedError\n", LOOP), LOOP),
        (f"def total(x):\n    ### BEGIN SOLUTION\n{LOOP}    ### END SOLUTION\n", LOOP),
        ('def total(x):\n    "words"; return x.sum()\n', '    "words"; return x.sum()\n'),
        ("def total(x:\n    return 3\n", "def total(x:\n    return 3\n"),
        ("", ""),
    ],
)
def test_text_that_was_handed_out_is_not_the_learners_own(source: str, own_lines: str):
    assert own(source, STUB) == own_lines


@pytest.mark.parametrize("broken", ['    """\n', "    '''\n    x = 3\n"])
def test_a_string_that_is_never_closed_hides_nothing(broken: str):
    assert found(work("ann", broken, LOOP), work("eve", RENAMED)).pairs[0].score > 0.9


def test_the_library_and_the_solution_are_compared_too():
    library, solution = work(OPS, LOOP), work(SOLUTION, OTHER)
    near = near_copies.by_student(
        found(work("ann", OTHER), work("eve", RENAMED), others=(library, solution)).references
    )
    assert list(near) == ["ann", "eve"]
    assert near["eve"][OPS].first.share == near["ann"][SOLUTION].first.share == 1
    assert near["eve"][SOLUTION].first.share < 0.3


def test_every_answer_of_the_library_has_a_source():
    from unrolled import checks

    for name, spec in checks.all_specs().items():
        if name == "repaired_step":  # put together from stages, so that no cell can show it; the solution's is compared
            continue
        assert (
            "def " in near_copies.source_of(spec)
            or "class " in near_copies.source_of(spec)
            or "lambda" in near_copies.source_of(spec)
        ), name


# A class that was handed in


@pytest.fixture(scope="module")
def pages(root: Path) -> Path:
    """The pages of a class: two near-copies, one whose name and code are HTML, a broken file and an untouched one."""
    sentinel = root / "executed"
    hostile = LOOP.replace(
        "running", "<script>alert(1)</script> </pre><img src=x onerror=alert(1)> \x1b[2J \x00 \u202e\u200b"
    )
    runs = f"    open({str(sentinel)!r}, 'w')\n"
    for student, code in {"ann": LOOP, "ben": OTHER, "<b>eve": hostile, "run": runs + OTHER}.items():
        source = STUB.replace("    raise NotImplementedError\n", code)
        hand_in(root, student, answered(root, {"total": f"{source}\n{runs.strip()}" if student == "run" else source}))
    hand_in(root, "untouched", answered(root, {}))
    hand_in(root, "broken", answered(root, {})).write_text("{", encoding="utf-8")
    old = root / "grades/similar" / LESSON
    old.mkdir(parents=True)
    for name in ("099.html", "my notes.html"):
        (old / name).touch()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        assert cli.main(["similar"]) == 0
    assert not sentinel.exists()
    return root / "grades" / "similar"


def test_who_cannot_be_compared_is_named(pages: Path):
    text = (pages / f"{LESSON}.html").read_text(encoding="utf-8")
    missed = dict(re.findall(r"<tr><td>(\w+)</td><td>([^<]*)</td></tr>", text.partition("Not compared")[2]))
    assert list(missed) == ["broken", "untouched"]
    assert "JSON" in missed["broken"]
    assert "4 students, 6 pairs" in text


def test_no_page_carries_anything_of_a_students_but_text(pages: Path):
    files = sorted(pages.rglob("*.html"))
    names = {file.relative_to(pages).as_posix() for file in files}
    assert {f"{LESSON}.html", f"{LESSON}/001.html", f"{LESSON}/my notes.html"} <= names
    assert f"{LESSON}/099.html" not in names  # of an earlier run
    for file in files:
        text = file.read_text(encoding="utf-8")
        if text:
            assert not re.search(r"<(?:script|b>eve|img src=x)|[\x1b\x00\u202e\u200b]", text)
            assert "default-src 'none'; script-src 'none'" in text
            assert not re.search(r"""(?:src|href)=["'](?!data:|[\w/.]+\.html["'])""", text)
    assert any("&lt;script&gt;alert(1)" in file.read_text(encoding="utf-8") for file in files)


def test_links_lead_to_the_pages_and_back(pages: Path):
    page = pages / f"{LESSON}.html"
    links = re.findall(r'href="([^"]*)"', page.read_text(encoding="utf-8"))
    assert len(links) == 6 + 4 * 2
    for link in links:
        target = page.parent / html.unescape(link)
        (back,) = re.findall(r'href="([^"]*)"', target.read_text(encoding="utf-8"))
        assert (target.parent / back).resolve() == page.resolve()


def test_the_page_says_what_a_number_means_and_what_it_does_not(pages: Path):
    text = (pages / f"{LESSON}.html").read_text(encoding="utf-8")
    for words in (
        "It is no proof of copying",
        "A low number proves nothing",
        "To the letter",
        "no student code was run",
    ):
        assert words.lower() in text.lower()
    assert re.search(r'alt="The 6 nearest of 6 pairs in 07_doubling\.[^"]*eve and ann: 100 %', text)


def test_names_that_matplotlib_would_read_as_mathematics_or_cannot_draw(recwarn: pytest.WarningsRecorder):
    picture = similar_page.ranking(found(work("$\\frac", LOOP), work("花子", RENAMED), work("x" * 300, OTHER)))
    assert picture.png()
    assert "花子" in picture.alt
    assert not [warning for warning in recwarn if "Glyph" in str(warning.message)]


def test_nothing_handed_in_is_no_error(root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    (root / "nobody").mkdir()
    monkeypatch.chdir(root)
    assert cli.main(["similar", "--submitted", "nobody"]) == 0
    assert "nothing was handed in yet" in capsys.readouterr().out
    assert near_copies.works(Grading.at(root, root / "nobody"), LESSON) == ([], [])
    assert set(SPECS) == {"double", "total"}


def test_a_cell_is_compared_as_far_as_it_counts(monkeypatch: pytest.MonkeyPatch):
    """The time to find what was handed out grows with the lines on both sides: ten million empty ones are too many."""
    seen: list[int] = []
    told = near_copies._told
    monkeypatch.setattr(near_copies, "_told", lambda source: seen.append(len(source)) or told(source))
    assert own("\n" * 1_000_000, "a\n\nb\n") == ""
    assert max(seen) <= near_copies.LONGEST + 5
