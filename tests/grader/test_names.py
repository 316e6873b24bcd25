"""Every form of a name is found, by `forget` and by `pseudonymous`. What is left is looked for without their code."""

from __future__ import annotations

import json
import shutil
import unicodedata
import zipfile
from pathlib import Path

import pytest
from small_course import GOOD, LESSON, answered, hand_in

import unrolled.cli
from unrolled_grader.classroom.roster import Person
from unrolled_grader.grading import Grading
from unrolled_grader.results import forget, people, pseudonyms, traces
from unrolled_grader.results.people import Names

KNOWN = {
    one.id: one
    for one in (
        Person("am03", "Müller, Jürgen", "x03@example.org", "9000003"),
        Person("gg04", "Gabriel José García Márquez", "x04@example.org", "9000004"),
        Person("ob05", "O'Brien, Seán", "x05@example.org", "9000005"),
        Person("yt06", "山田 太郎", "x06@example.org", "9000006"),
        Person("st07", "Strauß-Øster, Anna-Lena", "x07@example.org", "9000007"),
        Person("vb08", "van der Berg, Jan", "x08@example.org", "9000008"),
        Person("bob", "Hope, Bob", "bob@example.org", "9000009"),
    )
}
FORMS = {
    "am03": [
        *("Jürgen Müller", "Müller, Jürgen", "Müller Jürgen", "JürgenMüller", "MüllerJürgen", "jürgen_müller"),
        *(
            "JÜRGEN MÜLLER",
            "Jurgen Muller",
            "Juergen Mueller",
            "MUELLER, JUERGEN",
            "mueller-juergen",
            "juergen.mueller",
        ),
        *(unicodedata.normalize("NFD", name) for name in ("Jürgen Müller", "Müller, Jürgen", "MÜLLERJÜRGEN")),
        *("J. Müller", "Müller, J.", "J Mueller", "jmueller", "mullerj", "\uff2aürgen \uff2düller"),
    ],
    "gg04": [
        *("Gabriel José García Márquez", "García Márquez, Gabriel José", "GARCIA MARQUEZ Gabriel", "Gabriel García"),
        *("Gabriel Márquez", "G. J. García Márquez", "G. García", "GabrielGarciaMarquez", "garcia-marquez_gabriel"),
    ],
    "ob05": [
        "Sean O'Brien",
        "Seán O\u2019Brien",
        "Seán O\u02bcBrien",
        "OBrien, Sean",
        "O Brien Sean",
        "S. O'Brien",
        "sobrien",
        "SeanOBrien",
    ],
    "yt06": ["山田 太郎", "山田太郎", "山田\u3000太郎", "太郎 山田", "山田・太郎"],
    "st07": ["Anna-Lena Strauß-Øster", "Annalena Strauss", "STRAUSS-OESTER, ANNA", "Lena Öster", "A.-L. Strauß"],
    "vb08": ["Jan van der Berg", "van der Berg, Jan", "JanvanderBerg", "Jan Berg", "J. van der Berg", "berg.jan"],
}
INSIDE = {"am03": "hw3JuergenMueller2", "gg04": "by GarcíaMárquezG", "ob05": "(S.O'Brien)", "yt06": "は山田太郎です",
          "st07": "x/strauss_anna/y", "vb08": "@JanBerg!"}  # fmt: skip
ESCAPED = (
    "J&uuml;rgen M&uuml;ller",
    "J&#252;rgen&#x20;Mueller",
    r"J\u00fcrgen M\u00fcller",
    "J%C3%BCrgen%20M%C3%BCller",
)
STEMS = {"am03": ["uller", "ueller"], "gg04": ["garcia", "marquez"], "ob05": ["brien"], "yt06": ["山田", "太郎"],
         "st07": ["straus", "ster,", "oester"], "vb08": ["janvander", "janberg", "bergjan", "jberg"]}  # fmt: skip


def stems_in(folder: Path, student: str) -> list[str]:
    """Where a part of the name still stands: what is left of each file's letters, as another program would do it."""
    found = []
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        letters = unicodedata.normalize(
            "NFKD", f"{file.name} {file.read_bytes().decode('utf-8', 'replace')}"
        ).casefold()
        bare = "".join(letter for letter in letters if letter.isalnum())
        found += [f"{file.name}: {stem}" for stem in (student, *STEMS[student]) if stem in bare]
    return found


@pytest.fixture
def course(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Grading:
    """A course of these people, in which nothing was handed in."""
    shutil.copytree(root, tmp_path / "class")
    rows = "".join(f'{one.id},"{one.name}",{one.email},{one.lms_id}\n' for one in KNOWN.values())
    (tmp_path / "class" / "roster.csv").write_text(f"id,name,email,lms_id\n{rows}", encoding="utf-8")
    monkeypatch.chdir(tmp_path / "class")
    monkeypatch.setattr("unrolled.cli.checkout.find", lambda: tmp_path / "class")
    return Grading.at(tmp_path / "class")


def plant(root: Path) -> None:
    """Write each form of each name to where the program's own files and an instructor's lists may hold it."""
    told = [(student, form) for student, forms in FORMS.items() for form in (*forms, INSIDE[student])]
    lines = [f"[WARNING] {form} is late\n" for _, form in told]
    (root / ".nbgrader.log").write_text("".join(lines) + "[INFO] bob\n", encoding="utf-8")
    rows = [f'"{form}",{student}\n' for student, forms in FORMS.items() for form in forms]
    (root / "partners.csv").write_text(f"Wer;mit\n{''.join(rows).replace(',', ';')}Hope;Bob\n".replace("; ", ", "))
    remarks = [f'bob,7,"works with {form}"\n' for _, form in told]
    (root / "grades").mkdir()
    (root / "grades" / "remarks.csv").write_text(f"student,points,remark\n{''.join(remarks)}", encoding="utf-8")
    received = root / "grader" / "received"
    received.mkdir(parents=True)
    notes = [f"the same notebook as {student}; like {form}" for student, form in told]
    notes.append("the same notebook as am03, carl, gg04, ob05, st07, vb08, yt06")
    entries = [{"id": f"{at}", "source": "z.zip", "path": f"{at}.zip", "student": "bob", "note": note}
               for at, note in enumerate(notes)]  # fmt: skip
    (received / "index.jsonl").write_text("".join(json.dumps(entry, ensure_ascii=False) + "\n" for entry in entries))
    (root / "grades" / "collected.csv").write_text("outcome,student\n")


def test_forty_forms_of_names_are_gone_from_every_list(course: Grading) -> None:
    root = Path(course.directory.root)
    plant(root)
    assert sum(map(len, FORMS.values())) >= 40
    for student in FORMS:
        assert stems_in(root, student)
        assert unrolled.cli.main(["forget", student, "--yes"]) == 0
        assert stems_in(root, student) == []
    assert (root / "partners.csv").read_text() == "Wer;mit\nHope;Bob\n"
    assert (root / ".nbgrader.log").read_text() == "[INFO] bob\n"
    assert (root / "grades" / "remarks.csv").read_text().count("bob,7,works with") == len(FORMS) + sum(
        map(len, FORMS.values())
    )
    notes = [json.loads(line)["note"] for line in (root / "grader/received/index.jsonl").read_text().splitlines()]
    assert notes[-1] == "the same notebook as carl"
    assert notes[0] == "like (removed)"
    assert "the same notebook as carl" in (root / "grades" / "collected.csv").read_text()


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "utf-8-sig", "cp1252", "cp932"])
def test_a_list_in_any_encoding_that_a_roster_may_have_loses_their_rows(course: Grading, encoding: str) -> None:
    name = "山田 太郎" if encoding == "cp932" else "Jürgen Müller"
    mark = "\ufeff" if encoding == "utf-16-be" else ""
    student = "yt06" if encoding == "cp932" else "am03"
    text = f"{mark}Wer;Punkte\r\n{name};1\r\nSeán Hope;2\r\n".replace("á", "a")
    file = Path("roster-2.csv")
    file.write_bytes(text.encode(encoding))
    assert unrolled.cli.main(["forget", student, "--yes"]) == 0
    assert file.read_bytes().decode(encoding) == text.replace(f"{name};1\r\n", "")


def test_names_in_zips_are_read_in_the_encoding_that_they_are_in(tmp_path: Path) -> None:
    class Unmarked(zipfile.ZipInfo):
        def _encodeFilenameFlags(self) -> tuple[bytes, int]:  # noqa: N802
            return "Jürgen Müller/a.txt".encode(), 0

    with zipfile.ZipFile(tmp_path / "a.zip", "w") as packed:
        packed.writestr(Unmarked("a"), "")
    (found,) = traces.find(tmp_path, Names(KNOWN).finder("am03"))
    assert found.found == "Jürgen Müller"


def test_half_characters_of_json_are_put_together(tmp_path: Path) -> None:
    person = Person("ys07", "𠮷田 太郎")
    (tmp_path / "a.json").write_text(json.dumps("by 𠮷田太郎"))
    (found,) = traces.find(tmp_path, Names({"ys07": person}).finder("ys07"))
    assert found.found == "𠮷田太郎"


@pytest.mark.parametrize("student", FORMS)
def test_what_is_left_in_files_of_others_is_named_each(
    course: Grading, student: str, capsys: pytest.CaptureFixture[str]
) -> None:
    forms = [*FORMS[student], INSIDE[student], *(ESCAPED if student == "am03" else ())]
    for at, form in enumerate(forms):
        Path(f"{at}.txt").write_text(f"with {form}.", encoding="utf-8")
    assert unrolled.cli.main(["forget", student, "--yes"]) == 1
    said = capsys.readouterr().out
    assert [at for at in range(len(forms)) if f"still there: {at}.txt, line 1: " not in said] == []
    assert "Nothing is left" not in said


def test_an_export_holds_no_form_of_a_name(course: Grading, tmp_path: Path) -> None:
    forms = [form for student, forms in FORMS.items() for form in (*forms, INSIDE[student])]
    text = "\n".join(f"# {form}" for form in (*forms, *ESCAPED))
    handed = hand_in(Path.cwd(), "bob", answered(Path.cwd(), GOOD | {"double": f"{text}\n{GOOD['double']}"}))
    handed.with_name("journal.json").write_text(json.dumps({form: [form] for form in forms}))
    assert pseudonyms.export(course, people.known(course), tmp_path / "out") == (len(KNOWN), (), ())
    assert [found for student in FORMS for found in stems_in(tmp_path / "out", student)] == []
    assert [file for file in (tmp_path / "out").rglob("*") if file.is_file() and "00fc" in file.read_text()] == []
    assert GOOD["double"].splitlines()[-1] in next((tmp_path / "out").rglob(f"{LESSON}.ipynb")).read_text()


def test_what_may_be_another_stays_and_is_shown(course: Grading, capsys: pytest.CaptureFixture[str]) -> None:
    others = Person("jm09", "Jan Müller"), Person("mu10", "Jörg Muller"), Person("iw11", "Will, Ian")
    names = Names(KNOWN | {one.id: one for one in others}, {"will", "double"})
    for text in ("J. Müller", "Müller", "Jürgen", "j.mueller"):
        assert not names.is_sure(text, "am03")
        assert "am03" in names.meant(text)
    assert names.is_sure("Jürgen Müller", "am03")
    assert names.meant("Muller") == {"mu10"}
    assert not names.is_sure("I will", "iw11")
    scrub = pseudonyms.scrubber(names, {student: student.upper() for student in names.known})
    assert scrub.text("I will, says Ian Will to J. Müller, not J. Muller") == "I will, says IW11 to someone, not MU10"

    for at, text in enumerate(("Müller did", "ask Jürgen", "MUELLER")):
        Path(f"{at}.txt").write_text(text, encoding="utf-8")
    Path("who.csv").write_text("Wer,Punkte\nMüller,1\n", encoding="utf-8")
    assert unrolled.cli.main(["forget", "am03", "--yes"]) == 0
    said = capsys.readouterr().out
    assert "may be the student, or another, or a word: Müller: 0.txt, line 1; who.csv, line 2" in said
    assert "may be the student, or another, or a word: Jürgen: 1.txt, line 1" in said
    assert "MUELLER: 2.txt" in said
    assert "Nothing is left" not in said


def test_long_names_are_looked_for_in_time_that_grows_with_them() -> None:
    """No recursion, and no form for each two of a thousand words."""
    long, many = "x" * 2000, " ".join(f"w{at}" for at in range(200))
    names = Names(
        {"a17": Person("a17", f"Ada {long}"), "b17": Person("b17", many), "c17": Person("c17", "ss" * 500 + " Y")}
    )
    scrub = pseudonyms.scrubber(names, {student: student.upper() for student in names.known})
    assert scrub.text(f"{long}, Ada; {many}; {'ß' * 500} Y") == "A17; B17; C17"
    assert len(names.forms["b17"].all) < 1000


def test_a_namesakes_rows_stay() -> None:
    names = Names({name: Person(name, "Ada Lovelace") for name in ("ada", "al2")})
    text = "Name,Points\nAda Lovelace,1\nada,2\n"
    assert forget.without_rows(text, names, "ada") == ("Name,Points\nAda Lovelace,1\n", 1)
    split = "Given,Family,Points\nAda,Lovelace,1\nLovelace,Bob,2\n"
    assert forget.without_rows(split, Names({"x": Person("x", "Lovelace, Ada")}), "x")[0].count("\n") == 2
