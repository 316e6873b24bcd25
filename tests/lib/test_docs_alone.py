"""What docs/self-study.md and docs/colab.md print is what the commands print; the code of docs/nn.md runs."""

import json
import re
import shlex
from pathlib import Path

import pytest

from unrolled import check, checks, cli, journal, nn
from unrolled.cli import plan
from unrolled.journal import galleries
from unrolled.notebook import frontend

ROOT = Path(__file__).resolve().parents[2]
PAIR = re.compile(r"^```(sh|python)\n([^\n]+)\n```\n\n```text\n(.*?)\n```$", re.MULTILINE | re.DOTALL)
ANSWERS = {"conv2d_output_size": "conv2d_output_size = ...", "conv2d_loops": "conv2d_loops = ..."}
CHECKED = (
    ("ink", True, 1, 1, 17),
    ("matmul_rows", True, 3, 3, 18),
    ("batch_affine", True, 3, 3, 18),
    ("amdahl_speedup", True, 2, 2, 18),
    ("conv2d_output_size", True, 1, 1, 20),
    ("conv2d_loops", True, 3, 3, 20),
    ("im2col", False, 0, 3, 21),
)
FORWARD = "convolution forward only, x 60,000 images"
DENSE = "a dense layer 784 to 10, forward only"
RUNGS = (("dense layer, row by row", DENSE, 0.189), ("dense layer, one product", DENSE, 0.0255))
MINE = (*RUNGS, ("plain loops", FORWARD, 3380.0))
THEIRS = (("plain loops", FORWARD, 2100.0), ("one matrix product", FORWARD, 0.41))


def rung(label, what, seconds):
    return {"label": label, "what": what, "seconds": seconds, "batch": 8, "date": day_of(18)}


def a_journal(checked=CHECKED):
    """What the learner of the pages has done."""
    entries = {
        name: {"passed": passed, "ever_passed": passed, "points": points, "max_points": most, "date": day_of(day)}
        for name, passed, points, most, day in checked
    }
    return {**journal.file.empty(), "checks": entries, "rungs": {label: rung(label, *rest) for label, *rest in MINE}}


def day_of(day):
    return f"2026-10-{day}T10:30:00+00:00"  # the same day from Honolulu to Auckland


def a_notebook(answers=ANSWERS, words="Your answer here.", done=()):
    """The learner's notebook of lesson 02, with these cells written."""
    notebook = json.loads((ROOT / "notebooks" / "02_convolution" / "02_convolution.ipynb").read_text(encoding="utf-8"))
    for cell in notebook["cells"]:
        name = cell["metadata"].get("nbgrader", {}).get("grade_id")
        if name in answers:
            cell["source"] = answers[name]
        elif name == "im2col" and "im2col" in done:
            cell["source"] = "im2col = ..."
        elif name == "explain_gemm":
            cell["source"] = words
    return notebook


@pytest.fixture
def course(home, monkeypatch):
    """The course's folder in the middle of lesson 02; the current one."""
    work = home / "work"
    work.mkdir()
    (home / "pyproject.toml").write_text("[tool.unrolled]\n", encoding="utf-8")
    (home / "notebooks").symlink_to(ROOT / "notebooks")
    (work / "journal.json").write_text(json.dumps(a_journal()), encoding="utf-8")
    (work / "02_convolution.ipynb").write_text(json.dumps(a_notebook(done=["im2col"])), encoding="utf-8")
    theirs = galleries.document([galleries.ladder("fern", "1", [rung(*one) for one in THEIRS])])
    (home / "theirs.json").write_text(json.dumps(theirs), encoding="utf-8")
    monkeypatch.setenv("UNROLLED_JOURNAL", str(work / "journal.json"))
    return home


def same(printed, shown):
    """Whether the page shows what was printed: sizes may differ, and a line of … stands for any number of lines."""
    printed, shown = (re.sub(r"\(\d+ kB\)", "(kB)", text).strip() for text in (printed, shown))
    pattern = re.escape(shown).replace(re.escape("…"), "(?:.|\n)*")
    return re.fullmatch(pattern, printed) is not None


def forgot_to_double(size, kernel_size, stride=1, padding=0):
    return tuple((n + padding - k) // stride + 1 for n, k in zip(size, kernel_size, strict=True))


def test_self_study_shows_what_is_printed(course, capsys):
    kept = (course / "work" / "journal.json").read_bytes()
    pairs = PAIR.findall((ROOT / "docs" / "self-study.md").read_text(encoding="utf-8"))
    assert [kind for kind, _, _ in pairs].count("sh") == 3
    specs = checks.all_specs()
    assert {name: most for name, *_, most, _ in CHECKED} == {name: specs[name].total_points for name, *_ in CHECKED}
    names = {"check": check, "journal": journal, "conv2d_output_size": forgot_to_double}
    for kind, line, shown in pairs:
        if kind == "sh":
            assert cli.main(shlex.split(line)[1:]) == 0
        else:
            if line.startswith("check."):  # the page's check fails, in a learner's first minute
                (course / "work" / "journal.json").unlink()
            exec(line, names)
        printed = capsys.readouterr().out
        assert same(printed, shown), f"{line}\n\nprinted:\n{printed}\nshown:\n{shown}"
        if line.startswith("check."):
            (course / "work" / "journal.json").write_bytes(kept)
    assert (course / "record.html").is_file()
    assert "Ada Lovelace" in (course / "record.html").read_text(encoding="utf-8")


def test_a_short_way_takes_about_the_hours_that_it_names():
    ways = re.findall(r"^\| (\d+) hours \| ([\d, ]+)", (ROOT / "docs/self-study.md").read_text(encoding="utf-8"), re.M)
    stated = {lesson.name[:2]: lesson.minutes for lesson in plan.read(checks.lessons(), [ROOT / "notebooks"])}
    assert len(ways) == 3
    for hours, lessons in ways:
        assert sum(stated[lesson] for lesson in lessons.split(", ")) / 60 == pytest.approx(int(hours), rel=0.25)


def test_colab_shows_what_is_printed(course, capsys, monkeypatch):
    page = (ROOT / "docs" / "colab.md").read_text(encoding="utf-8")
    shown = re.search(r"<!-- output of journal.submit -->\n```text\n(.*?)\n```", page, re.DOTALL)[1]
    drive = course / "MyDrive"
    drive.mkdir()
    kept = drive / "unrolled-journal.json"
    kept.write_text(json.dumps(a_journal(CHECKED[:-1])), encoding="utf-8")
    monkeypatch.setattr(frontend, "DRIVE", drive)
    monkeypatch.setattr(frontend, "on_colab", lambda: True)
    monkeypatch.setattr(frontend, "colab_notebook", lambda: a_notebook(words="It is one product."))
    monkeypatch.setattr(frontend, "offer", lambda file: None)
    journal.use(kept)
    capsys.readouterr()
    journal.submit("ada")
    assert same(capsys.readouterr().out.replace(str(drive), "/content/drive/MyDrive"), shown)


def test_the_code_of_the_page_of_networks_runs_and_has_every_public_name():
    page = (ROOT / "docs" / "nn.md").read_text(encoding="utf-8")
    code = "\n".join(re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL))
    exec(compile(code, "docs/nn.md", "exec"), {"__name__": "page"})
    assert set(nn.__all__) <= set(re.findall(r"\bnn\.(\w+)", code))
