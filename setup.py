"""What the wheel brings of the course's folder beside the packages, as unrolled/course; all else is in pyproject.toml.

The learners' notebooks, and what `unrolled demo` needs without a checkout. No solution of a graded exercise.
"""

from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

DEMO = ("nbgrader_config.py", "grader/nbgrader_config.py", "grader/sample_class/README.md")
BROUGHT = ("notebooks/[0-9]*/*.ipynb", *DEMO, "grader/sample_class/lesson00.py")


def brought() -> list[str]:
    """Return the paths of the files, as far as this tree has them: a class's tree for learners has notebooks alone."""
    return sorted(file.as_posix() for pattern in BROUGHT for file in Path().glob(pattern))


class WithCourse(build_py):
    """Copies them as well. An editable installation finds them where they are."""

    def run(self) -> None:
        super().run()
        for name in [] if self.editable_mode else brought():
            target = Path(self.build_lib, "unrolled", "course", name)
            self.mkpath(str(target.parent))
            self.copy_file(name, str(target))

    def get_source_files(self) -> list[str]:
        return [*super().get_source_files(), *brought()]  # for the sdist


setup(cmdclass={"build_py": WithCourse})
