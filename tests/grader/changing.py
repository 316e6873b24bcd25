"""A class of two lessons under way, as `unrolled class new` would have made it, and a judge that takes no time."""

import argparse
import json
import re
import shutil
from itertools import chain
from pathlib import Path
from typing import Any

import small_course
from nbgrader.api import Gradebook
from small_course import CHECK, GOOD, LESSON, SOLUTION, SOURCE

from unrolled import checks
from unrolled.checks import choices
from unrolled.checks.spec import Spec, case, variant
from unrolled_grader import change
from unrolled_grader.authoring import notebooks
from unrolled_grader.classroom import seeds, settings, trees
from unrolled_grader.judge import evidence
from unrolled_grader.judge.verdicts import Options, Submission, Verdicts

OTHER = "08_halving"
RATIO = 3.0
"""How much faster than its baseline every `total` is."""

HEADED = SOURCE.replace(
    f"# %% nbgrader={SOLUTION % 'double'}",
    f"# %% [markdown]\n# ### Exercise: double\n\n# %% nbgrader={SOLUTION % 'double'}",
)
HALVING = f'''\
# %% [markdown]
# # Halving
#
# Lesson 08, about 5 minutes.

# %%
from unrolled import check
check.start("{OTHER}")

# %% nbgrader={SOLUTION % "halve"}
def halve(number):
    ### BEGIN SOLUTION
    return number / 2
    ### END SOLUTION

# %% nbgrader={CHECK % ("halve", 1)}
check.halve(halve)
'''
VARIANT = f"""\
# %% [markdown]
# ### Exercise: double_text

# %% nbgrader={SOLUTION % "double_text"}
def double_text(text):
    ### BEGIN SOLUTION
    return text + text
    ### END SOLUTION

# %% nbgrader={CHECK % ("double_text", 2)}
check.double_text(double_text)
"""
DECLARED = {
    LESSON: small_course.SPECS,
    OTHER: {"halve": Spec(lambda number: number / 2, [case("two", number=2)], 1, ("idea", "shape", "code"))},
}
VARIANTS = {"double": {"text": variant(small_course.SPECS["double"], cases=[case("ab", number="ab")])}}


def know(patch: Any, root: Path) -> None:
    """Let this process know the two lessons, and what the class in `root` chose."""
    patch.setattr(checks, "declared", lambda: DECLARED)
    patch.setattr(checks, "variants", lambda: VARIANTS)
    patch.setattr(checks, "_specs", checks._specs.__wrapped__)
    patch.setattr(checks, "lessons", lambda: checks.specs_for(choices.read(root / settings.CHOICES)))


def make(folder: Path) -> Path:
    """Make folder/instructors and folder/learners, and return the first. The class has lesson 07 alone."""
    root = folder / "instructors"
    (root / "grader").mkdir(parents=True)
    (root / "lessons" / "variants").mkdir(parents=True)
    for file in ("pyproject.toml", "nbgrader_config.py", "grader/nbgrader_config.py"):
        shutil.copy(small_course.ROOT / file, root / file)
    for name, text in {LESSON: HEADED, OTHER: HALVING, "variants/07_double_text": VARIANT}.items():
        pointless = re.sub(r'(?<="locked": true), "points": \d+', "", text)  # their specs are known
        (root / "lessons" / f"{name}.py").write_text(pointless, encoding="utf-8")
    wanted = settings.Settings(name="Spring", lessons=(LESSON,))
    for file, text in {settings.FILE: settings.written(wanted), settings.CHOICES: trees.choices_text(wanted)}.items():
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).write_text(text, encoding="utf-8")
    (root / "lib" / "unrolled" / "__init__.py").write_text("# the library", encoding="utf-8")
    seeds.write(root)
    notebooks.build(root)
    trees.write_learners(root, folder / "learners", wanted, notebooks.Address())
    return root


def judge(submission: Submission, options: Options) -> Verdicts:
    """Find every `double` and `total` right that is as it should be, and every `total` `RATIO` times as fast."""
    sources = {cell.source for cell in submission.notebook.cells}

    def scores(name: str, spec: Spec) -> list[evidence.Score]:
        right = GOOD.get(name) in sources
        found = [evidence.Score(name, "pass" if right else "fail", spec.points * right, spec.points, "")]
        if spec.speed is not None:
            fast = right and spec.speed.at_least <= RATIO
            timing = {"at_least": spec.speed.at_least, "ratio": RATIO, "outcome": "pass" if fast else "fail"}
            points = spec.speed.points * fast
            part = (f"{name}/speed", "pass" if fast else "fail", points, spec.speed.points, "", "", (timing,))
            found.append(evidence.Score(*part))
        return found

    parts = chain.from_iterable(scores(name, spec) for name, spec in submission.specs.items())
    return Verdicts(submission.notebook, tuple(parts), 0.1, ())


def run(*words: str) -> int:
    """Type `unrolled class change` and these words."""
    parser = argparse.ArgumentParser()
    change.add(parser.add_subparsers())
    arguments = parser.parse_args(["class", "change", *words])
    return int(arguments.run(arguments))


def marked(root: Path, student: str, points: float) -> None:
    """A person gives points for the student's answer in words."""
    with Gradebook(f"sqlite:///{root / 'grader' / 'gradebook.db'}", "unrolled") as book:
        grade = book.find_grade("explain_total", LESSON, LESSON, student)
        grade.manual_score, grade.needs_manual_grade = points, False
        book.db.commit()


def files(root: Path) -> dict[str, bytes]:
    """What the two trees hold, but for what grading makes."""
    made = ("grades", "grader/gradebook.db", "grader/autograded", "grader/feedback")
    made = tuple(f"instructors/{name}" for name in made)
    found = [file for tree in (root, root.parent / "learners") for file in tree.rglob("*") if file.is_file()]
    names = {file.relative_to(root.parent).as_posix(): file for file in found}
    return {name: file.read_bytes() for name, file in names.items() if not name.startswith(made)}


def worth(root: Path, lesson: str = LESSON) -> dict[str, float]:
    """What the graded cells of a learner's notebook are worth, by grade_id."""
    notebook = json.loads((root / "notebooks" / lesson / f"{lesson}.ipynb").read_bytes())
    marks = [cell["metadata"]["nbgrader"] for cell in notebook["cells"] if "nbgrader" in cell["metadata"]]
    return {mark["grade_id"]: mark["points"] for mark in marks if mark["grade"]}
