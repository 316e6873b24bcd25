"""What stands in a class's tree for learners beside library and notebooks: pure functions from plain data to text."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

from unrolled_grader.classroom.settings import toml_text

EXTRAS = ("lab", "gpu")
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)#]+)(#[^)]*)?\)")
ROWS = re.compile(r"(?:^\| \[[^\]]+\]\(notebooks/.+\) \| .+ \|\n)+", re.MULTILINE)

MAKEFILE = """\
# make lab              sets up .venv, copies the lessons to work/ if they are not there, opens JupyterLab
# make lab LESSON=02    opens one lesson; LAB_ARGS='--no-open -- --port 9999' reaches `unrolled lab` and JupyterLab

PYTHON ?= python3
LESSON ?=
LAB_ARGS ?=
export PYTHON

.PHONY: lab

lab: .venv/.lab
	@.venv/bin/unrolled lab $(LESSON) $(LAB_ARGS)

.venv/.lab: pyproject.toml
	@.ci/venv lab
"""

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

PYPROJECT = """\
[build-system]
requires = {build}
build-backend = "setuptools.build_meta"

[project]
name = "unrolled"
description = {description}
readme = "README.md"
requires-python = {python}
license = {license}
license-files = ["LICENSE"]
dynamic = ["version"]
dependencies = {dependencies}

[project.optional-dependencies]
{extras}

[project.scripts]
unrolled = "unrolled.cli:main"

[tool.setuptools]
include-package-data = false

[tool.setuptools.packages.find]
where = ["lib"]
include = ["unrolled*"]
namespaces = false

[tool.setuptools.package-data]
unrolled = {data}

[tool.setuptools.dynamic]
version = {{ attr = "unrolled.__version__" }}

# Where the notebooks' first cells fetch this class's course from.
[tool.unrolled]
repository = {repository}
tag = {tag}
"""

README = """\
# {title}

Notebooks in which you make a neural network fast, one measured step at a time. You write a few lines, a check says at
once what is right, what is not, and how fast it is.

## Start

On Linux or macOS with Python 3.10 or newer:

```sh
make lab
```

On Windows, or where there is no `make`:

```sh
python -m venv .venv
.venv\\Scripts\\pip install -e .[lab]
.venv\\Scripts\\unrolled lab
```

Your copies of the notebooks are in `work/`. Nothing but you changes them.

## Lessons

| lesson | minutes |
| --- | --- |
{lessons}

## Commands

In `.venv/bin/` (on Windows `.venv\\Scripts\\`), so that nothing else on your computer is touched:

| command | what it does |
| --- | --- |
| `unrolled lab` | copies the lessons to `work/` if they are not there, and opens them |
| `unrolled check work/LESSON.ipynb` | runs a notebook and says what its checks find |
| `unrolled submit LESSON` | makes the file that you hand in |
| `unrolled progress` | what you have passed, and what comes next |
| `unrolled doctor` | what your computer has, and what it lacks |

In a notebook, `check.NAME.hint()` helps in three steps. `unrolled --help` lists every command.

`unrolled.ops` in `lib/` holds the course's own answers, because later lessons build on them. A function that calls
them does not pass its check, but for what its exercise allows. Read them after you have written your own.
{docs}
## License and credits

BSD-3-Clause, see [LICENSE](LICENSE). Made from Unrolled {version}. The course grew out of five texts by others; each
lesson credits what it retells.
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


def with_rows(readme: str, lessons: Mapping[str, str]) -> str:
    """Return a README, which people may have written in, with these lessons in its table; as it is if it has none."""
    return ROWS.sub(lambda _: rows(lessons) + "\n", readme, count=1)


def unlinked(text: str, there: Collection[str]) -> str:
    """Return a page without links to pages that are not `there`, as links name them; their words stay."""
    return LINK.sub(lambda link: link[0] if "://" in link[2] or link[2] in there else link[1], text)


def _title(text: str) -> str:
    return text.partition("\n")[0].removeprefix("# ").strip()


def _minutes(text: str) -> str:
    found = re.search(r"about (\d+) minutes", text)
    return found[1] if found else "–"
