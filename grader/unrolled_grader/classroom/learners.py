"""What stands in a class's tree for learners beside library and notebooks: pure functions from plain data to text."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from unrolled_grader.classroom.settings import toml_text

EXTRAS = ("lab", "gpu")
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)#]+)(#[^)]*)?\)")
ROWS = re.compile(r"(?:^\| \[[^\]]+\]\(notebooks/.+\) \| .+ \|\n)+", re.MULTILINE)

TEMPLATES = Path(__file__).with_name("templates")
MAKEFILE, PYPROJECT, README = (
    (TEMPLATES / f"{name}.template").read_text(encoding="utf-8") for name in ("Makefile", "pyproject.toml", "README.md")
)
REQUIREMENTS = """\
# `pip install -r requirements.txt` in this folder, then `unrolled lab`. pyproject.toml is where dependencies are kept.
-e .[lab]
"""

GITIGNORE = """\
.venv/
__pycache__/
*.egg-info/
build/
.ipynb_checkpoints/
work/
"""


def pyproject(ours: Mapping[str, Any], repository: str, tag: str) -> str:
    """Return the learners' pyproject.toml, from the whole course's as parsed: only the library and what it needs."""
    project, extras = ours["project"], ours["project"]["optional-dependencies"]
    return PYPROJECT.format(
        build=toml_text(ours["build-system"]["requires"]),
        description=toml_text(project["description"].partition(" and an autograder")[0]),
        python=toml_text(project["requires-python"]),
        license=toml_text(project["license"]),
        dependencies=toml_text(project["dependencies"]),
        extras="\n".join(f"{name} = {toml_text(extras[name])}" for name in EXTRAS),
        data=toml_text(ours["tool"]["setuptools"]["package-data"]["unrolled"]),
        repository=toml_text(repository),
        tag=toml_text(tag),
    )


def readme(name: str, lessons: Mapping[str, str], docs: Mapping[str, str], version: str) -> str:
    """Return the learners' README; `lessons` maps a name to the text of its first cell, `docs` a page to its text."""
    pages = "".join(f"- [{_title(text)}](docs/{page})\n" for page, text in docs.items())
    return README.format(
        title=name or "Unrolled",
        lessons=rows(lessons),
        docs=f"\n## More\n\n{pages}" if pages else "",
        version=version,
    )


def rows(lessons: Mapping[str, str]) -> str:
    """Return a line of the README's table for each lesson, by the text of its first cell."""
    return "\n".join(
        f"| [{lesson[:2]} {_title(text)}](notebooks/{lesson}/{lesson}.ipynb) | {_minutes(text)} |"
        for lesson, text in lessons.items()
    )


def unlinked(text: str, there: Collection[str]) -> str:
    """Return a page without links to pages that are not `there`, as links name them; their words stay."""
    return LINK.sub(lambda link: link[0] if "://" in link[2] or link[2] in there else link[1], text)


def _title(text: str) -> str:
    return text.partition("\n")[0].removeprefix("# ").strip()


def _minutes(text: str) -> str:
    found = re.search(r"about (\d+) minutes", text)
    return found[1] if found else "–"
