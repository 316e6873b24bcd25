"""What the wheel brings beside the packages: a part of the course's folder, as unrolled/course, and its commit's name.

The learners' notebooks, and what `unrolled demo` needs without a checkout. No solution of a graded exercise.
"""

import contextlib
import os
import subprocess
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

DEMO = ("nbgrader_config.py", "grader/nbgrader_config.py", "grader/sample_class/README.md")
BROUGHT = ("notebooks/[0-9]*/*.ipynb", *DEMO, "grader/sample_class/lesson00.py")


def brought() -> list[str]:
    """Return the paths of the files, as far as this tree has them: a class's tree for learners has notebooks alone."""
    return sorted(file.as_posix() for pattern in BROUGHT for file in Path().glob(pattern))


def commit() -> str:
    """Return the name of this tree's commit, by git, or as `unrolled wheel` names it, which builds from a copy."""
    if not Path(".git").exists():
        return os.environ.get("UNROLLED_COMMIT", "")
    command = ["git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    with contextlib.suppress(OSError):
        return subprocess.run(command, capture_output=True, text=True).stdout.strip()
    return ""


class WithCourse(build_py):
    """Copies them as well. An editable installation finds them where they are."""

    def run(self) -> None:
        super().run()
        if self.editable_mode:
            return
        package = Path(self.build_lib, "unrolled")
        for name in brought():
            target = package / "course" / name
            self.mkpath(str(target.parent))
            self.copy_file(name, str(target))
        if name := commit():
            (package / "commit.txt").write_text(name, encoding="utf-8")

    def get_source_files(self) -> list[str]:
        return [*super().get_source_files(), *brought()]  # for the sdist


setup(cmdclass={"build_py": WithCourse})
