"""What thirty students hand in, and what their instructor does where no command does it."""

import csv
import io
import json
import zipfile
from pathlib import Path

import nbformat
from colab_saves import saved, without_marks
from lms_exports import CLASS, Upload, canvas_zip, roster_csv, zipped
from nbformat import NotebookNode
from nbgrader.api import Gradebook
from page import Walk

from unrolled.notebook import cells, handin
from unrolled.notebook.cells import grade_id
from unrolled_grader.authoring import sample

START, CONVOLUTION, MANY_DEVICES = "00_start_here", "02_convolution", "12_many_devices"

INK = {
    "right": "def ink(images):\n    return images.mean(axis=(1, 2, 3))",
    "product": (
        "def ink(images):\n    x = images.reshape(len(images), -1)\n"
        "    return x @ np.full(x.shape[1], 1 / x.shape[1], dtype=images.dtype)"
    ),
    "sum": (
        "def ink(images):\n    n, _, h, w = images.shape\n"
        "    return images.sum(axis=(1, 2, 3)) / images.dtype.type(h * w)"
    ),
    "one mean for all": "def ink(images):\n    return images.mean()",
    "float64": "def ink(images):\n    return np.array([image.mean() for image in images], dtype=np.float64)",
    "the wrong axes": "def ink(images):\n    return images.mean(axis=(0, 2, 3))",
    "not written": "",
    "a name too many": "def ink(images):\n    return pictures.mean(axis=(1, 2, 3))",
}
WORDS = (
    "A ratio of my function and a loop on one machine says something about the code. Mine was 240.",
    "Because computers differ.",
    "1 ms is easy on a new laptop and hard on an old one; both have the same ratio, about 200 here.",
)
"""What they answer in words; a person gives 1, 0.5 and 1 for it."""
ANSWERS = {4: "one mean for all", 12: "the wrong axes", 17: "float64", 21: "not written", 26: "a name too many"}


def answered(root: Path, number: int) -> NotebookNode:
    """A student's notebook of lesson 00; `root` is a checkout of the class."""
    notebook = cells.read(root / "notebooks" / START / f"{START}.ipynb")
    ink = INK[ANSWERS.get(number) or ("right", "product", "sum")[number % 3]]
    for cell in notebook.cells:
        if grade_id(cell) == "ink" and ink:
            cell.source = f"# {number}\n{ink}"
        elif grade_id(cell) == "explain_ratio" and ink:
            cell.source = WORDS[number % 3]
    return notebook


def written(notebook: NotebookNode) -> bytes:
    return nbformat.writes(notebook).encode()


def hand_in(notebook: NotebookNode, student: str, lesson: str, made: str) -> bytes:
    """The file that `unrolled submit` makes, at this moment."""
    with zipfile.ZipFile(io.BytesIO(handin.make(written(notebook), {}, student, lesson))) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    files[handin.ABOUT] = json.dumps(json.loads(files[handin.ABOUT]) | {"made": made}).encode()
    return zipped(files.items())


def first_download(root: Path) -> bytes:
    """Canvas's zip of lesson 00: thirty students, and everything that goes wrong in a class."""
    plain = {number: written(answered(root, number)) for number in range(1, 31)}
    uploads = {number: [Upload(CLASS[number - 1], data, f"{START}.ipynb")] for number, data in plain.items()}

    def instead(number: int, *files: tuple[bytes, str], late: bool = False) -> None:
        uploads[number] = [
            Upload(CLASS[number - 1], data, name, late, 800_000 + 10 * number + place)
            for place, (data, name) in enumerate(files)
        ]

    name, again = f"{START}.ipynb", f"{START}-1.ipynb"
    instead(2, (hand_in(answered(root, 2), "s002", START, "2027-01-14T18:20:00+09:00"), f"{START}.s002.zip"))
    instead(3, (saved(answered(root, 3)), f"Copy_of_{START}.ipynb"))
    instead(5, (saved(answered(root, 5), without_marks), "Untitled0.ipynb"))
    instead(6, (plain[6], name), (plain[6], again))
    instead(7, (plain[7], name), late=True)
    instead(8, (hand_in(answered(root, 8), "s008", START, "2027-01-16T00:40:00+09:00"), f"{START}.s008.zip"), late=True)
    instead(9, (zipped([(name, plain[9])])[:900], f"{START}.zip"))
    instead(10, (zipped([(name, bytes(60_000_000))]), "homework.zip"))
    instead(14, (b"%PDF-1.7 printed", f"{START}.pdf"))
    instead(15, ((root / "notebooks" / CONVOLUTION / f"{CONVOLUTION}.ipynb").read_bytes(), f"{CONVOLUTION}.ipynb"))
    instead(16, (plain[16][:20], name))
    instead(18, (plain[18].replace(b"# 18", b"# a draft, 18"), name), (plain[18], again))
    instead(20, (hand_in(answered(root, 12), "s012", START, "2027-01-15T20:00:00+09:00"), f"{START}.s012.zip"))
    instead(23, (plain[22], name))
    more = {f"__MACOSX/._{name}": b"\0", f"../../{name}": plain[1]}
    return canvas_zip([one for files in uploads.values() for one in files], more=more)


AGAIN = (9, 10, 14, 15, 16, 20)
"""Who hands in again after the first download, now as asked for."""


def second_download(root: Path) -> bytes:
    """Canvas's zip a few days later: those who were asked handed in again."""
    return canvas_zip(
        [Upload(CLASS[at - 1], written(answered(root, at)), f"{START}-1.ipynb", file=950_000 + at) for at in AGAIN]
    )


SIX = {1: "perfect", 2: "another_way", 3: "off_by_one", 4: "off_by_one", 5: "raises", 6: "another_way"}
"""Who hands in lesson 02, with the answers of a student of the sample class."""


TWO = {1: "perfect", 2: "off_by_one"}
"""Who hands in lesson 12, with the answers of a student of the sample class."""


def sample_download(root: Path, lesson: str, students: dict[int, str], by_colab: tuple[int, ...] = ()) -> bytes:
    """Canvas's zip of a lesson with answers of the sample class; some of them Colab saved."""
    books = {number: sample.notebook(root, student, lesson) for number, student in students.items()}
    files = {number: (saved if number in by_colab else written)(book) for number, book in books.items()}
    return canvas_zip([Upload(CLASS[number - 1], data, f"{lesson}.ipynb") for number, data in files.items()])


def marked(walk: Walk) -> None:
    """In formgrader a person reads every answer in words that waits, and gives points."""
    with Gradebook(f"sqlite:///{walk.folder / 'grader' / 'gradebook.db'}", "unrolled") as book:
        for lesson in book.assignments:
            for submission in book.assignment_submissions(lesson.name):
                for notebook in submission.notebooks:
                    for grade in notebook.grades:
                        if grade.needs_manual_grade and grade.name.startswith("explain_"):
                            third = int(submission.student_id[1:]) % 3
                            grade.manual_score = grade.max_score * (1, 0.5, 1)[third]
                            grade.needs_manual_grade = False
        book.db.commit()


def downloads(walk: Walk, name: str, data: bytes) -> None:
    folder = walk.home / "Downloads"
    folder.mkdir(exist_ok=True)
    (folder / name).write_bytes(data)


def roster(walk: Walk) -> None:
    """The roster of the first week: two numbers are exchanged, and somebody is not in it yet."""
    numbers = {"s011": CLASS[11].lms_id, "s012": CLASS[10].lms_id}
    people = [one._replace(lms_id=numbers.get(one.id, one.lms_id)) for one in CLASS if one.id != "s013"]
    (walk.folder / "roster.csv").write_text(roster_csv(people), encoding="utf-8")


def canvas_gradebook(walk: Walk) -> None:
    """Canvas's gradebook as *Export* gives it, with its own rows and the teacher's test student."""
    head = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section", f"{START} (4711)")
    rows = [[one.sortable, one.lms_id, "", one.id, "Spring 2027", ""] for one in CLASS]
    test = ["Student, Test", "79999", "", "0f3c7a9be1d24c58a6b7f0e1d2c3b4a5968778a9", "Spring 2027", ""]
    buffer = io.StringIO()
    csv.writer(buffer).writerows([head, ["    Points Possible", "", "", "", "", "2"], *rows, test])
    downloads(walk, "grades.csv", buffer.getvalue().encode("utf-8-sig"))


MEANWHILE = {
    "roster": roster,
    "canvas_gradebook": canvas_gradebook,
    "first_download": lambda walk: downloads(walk, "submissions.zip", first_download(walk.folder)),
    "second_download": lambda walk: downloads(walk, "submissions-2.zip", second_download(walk.folder)),
    "convolution": lambda walk: downloads(
        walk, "convolution.zip", sample_download(walk.folder, CONVOLUTION, SIX, by_colab=(3,))
    ),
    "many_devices": lambda walk: downloads(walk, "many_devices.zip", sample_download(walk.folder, MANY_DEVICES, TWO)),
    "marked": marked,
}
"""What the page's comments name."""
