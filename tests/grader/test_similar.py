"""Near-copies are found whatever their names, honest work and handed-out text are not taken for them, no code runs."""

import csv
import functools
import re
from pathlib import Path

import pytest
from small_course import LESSON, answered, hand_in

from unrolled import checks, cli
from unrolled_grader.results import near_copies
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
NAMES = {"# running": "# another comment", "result": "s", "place": "k", "number": "value", "(x)": "(data)"}
RENAMED = functools.reduce(lambda text, name: text.replace(name, NAMES[name]), NAMES, LOOP)
OTHER = """\
    halves = [x[: len(x) // 2], x[len(x) // 2 :]]
    while len(halves) > 1:
        halves.append(np.add.reduce(halves.pop()) + halves.pop().sum())
    mean, spread = halves[0] / max(x.size, 1), x.std() ** 2
    assert spread >= 0 or np.isnan(mean), (mean, spread)
    return halves[0].astype("float32")
"""


def work(who: str, *parts: str) -> WrittenCode:
    return WrittenCode(who, "".join(parts))


def found(*works: WrittenCode, others: tuple[WrittenCode, ...] = ()) -> Found:
    return compare(LESSON, works, [], others)


def test_a_copy_with_other_names_and_comments_is_found_and_honest_work_is_not():
    """Code around a copy does not hide it."""
    (nearest,) = found(work("ann", OTHER, LOOP), work("eve", RENAMED)).pairs
    assert {nearest.first.who, nearest.second.who} == {"ann", "eve"}
    assert max(nearest.shares) == nearest.score == 1
    assert min(nearest.shares) < 0.7
    (honest,) = found(work("ben", OTHER), work("eve", RENAMED)).pairs
    assert honest.score < 0.3


def test_code_that_breaks_the_comparison_is_set_aside_alone(monkeypatch: pytest.MonkeyPatch):
    def fragile(work: WrittenCode) -> object:
        if work.who == "eve":
            raise RuntimeError("no token")
        return fingerprint(work)

    fingerprint = near_copies.fingerprint
    monkeypatch.setattr(near_copies, "fingerprint", fragile)
    found = compare(LESSON, [WrittenCode(who, LOOP) for who in ("ann", "eve", "ben")], [], [])
    assert [work.who for work in found.works] == ["ann", "ben"]
    assert found.passed_over == (("eve", "its code cannot be read: no token"),)


@pytest.mark.parametrize(
    ("source", "own_lines"),
    [
        (STUB, ""),
        (STUB.replace("    raise NotImplementedError\n", LOOP), LOOP),
        ('def total(x):\n    "words"; return x.sum()\n', '    "words"; return x.sum()\n'),
        ("def total(x:\n    return 3\n", "def total(x:\n    return 3\n"),
        ("", ""),
    ],
)
def test_text_that_was_handed_out_is_not_the_learners_own(source: str, own_lines: str):
    assert own(source, STUB) == own_lines


@pytest.mark.parametrize("broken", ['    """\n', "    '''\n    x = 3\n"])
def test_a_string_that_is_never_closed_hides_nothing(broken: str):
    assert found(work("ann", own(broken, ""), LOOP), work("eve", RENAMED)).pairs[0].score > 0.9


def test_the_library_and_the_solution_are_compared_too():
    library, solution = work(OPS, LOOP), work(SOLUTION, OTHER)
    references = found(work("ann", OTHER), work("eve", RENAMED), others=(library, solution)).references
    near = {(pair.first.who, pair.second.who): pair.shares[0] for pair in references}
    assert near["eve", OPS] == near["ann", SOLUTION] == 1
    assert near["eve", SOLUTION] < 0.3
    assert len(near) == 4


def test_every_answer_of_the_library_has_a_source():
    for name, spec in checks.all_specs().items():
        if name != "repaired_step":  # put together from stages, so that no cell can show it; the solution's is compared
            assert re.search(r"def |class |lambda", near_copies.source_of(spec)), name


# A class that was handed in


@pytest.fixture(scope="module")
def pages(root: Path) -> Path:
    """What is written of a class: two near-copies, one of them HTML, a broken file and an untouched one."""
    sentinel = root / "executed"
    signs = "<script>alert(1)</script> </pre><img src=x onerror=alert(1)> \x1b[2J \x00 \u202e\u200b"
    hostile = LOOP.replace("running", signs)
    runs = f"    open({str(sentinel)!r}, 'w')\n"
    for student, code in {"ann": LOOP, "ben": OTHER, "<b>eve": hostile, "run": runs + OTHER}.items():
        source = STUB.replace("    raise NotImplementedError\n", code)
        hand_in(root, student, answered(root, {"total": f"{source}\n{runs.strip()}" if student == "run" else source}))
    hand_in(root, "untouched", answered(root, {}))
    hand_in(root, "broken", answered(root, {})).write_text("{", encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        assert cli.main(["similar"]) == 0
    assert not sentinel.exists()
    return root / "grades" / "similar"


def test_the_list_has_every_pair_and_the_report_nothing_of_a_students_but_text(pages: Path):
    with (pages / f"{LESSON}.csv").open(newline="", encoding="utf-8") as file:
        head, *rows = csv.reader(file)
    assert tuple(head) == near_copies.COLUMNS
    assert len(rows) == 6 + 4 * 2
    assert [row for row in rows[:2] if "ann" in row] == [["<b>eve", "ann", "100 %"]]
    text = (pages / f"{LESSON}.html").read_text(encoding="utf-8")
    assert not re.search(r"<(?:script|link|b>eve|img src=x)|[\x1b\x00\u202e\u200b]", text)
    assert "default-src 'none'; script-src 'none'" in text
    assert not re.search(r"""(?:src|href)=["'](?!data:)""", text)
    assert "&lt;script&gt;alert(1)" in text
    assert "result + " in text


@pytest.mark.usefixtures("pages")
def test_who_cannot_be_compared_is_named(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(root)
    assert cli.main(["similar"]) == 0
    output = capsys.readouterr().out
    assert f"{LESSON}: 4 compared, 2 not\n" in output
    assert re.search(r"not compared: broken, .*JSON", output)
    assert "not compared: untouched, too little code" in output
    assert "  100 %  <b>eve, ann (the pair in the middle: " in output
    (root / "nobody").mkdir()
    assert cli.main(["similar", "--submitted", "nobody"]) == 0
    assert "nothing was handed in yet" in capsys.readouterr().out


def test_the_report_shows_no_more_than_the_nearest(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(near_copies, "TOP", 1)
    result = found(work("ann", LOOP, OTHER), work("ben", OTHER), work("eve", LOOP, OTHER))
    assert len(result.pairs) == 3
    assert result.report.count("Token overlap") == 1
