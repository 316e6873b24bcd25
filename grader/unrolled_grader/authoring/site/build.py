"""`unrolled site`: gather the pages, and let Sphinx make a static site of them that loads nothing from elsewhere."""

from __future__ import annotations

import argparse
import importlib.util
import re
import shutil
from pathlib import Path

from unrolled.cli import CommandError, Subparsers, checkout, count, folder
from unrolled_grader.authoring import finished, notebooks

SOURCES = "site"
GATHERED = Path("build", "site-source")
OUT = Path("build", "site")
LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)\s]+)\)")


def build(root: Path, out: Path, at_once: int = 1) -> None:
    """Execute the lessons, unless they were before, and build the site in the folder `out`. Raises CommandError.

    `at_once` lessons run side by side. They disturb each other's measurements, and those are what the pages show.
    """
    if importlib.util.find_spec("sphinx") is None or importlib.util.find_spec("myst_nb") is None:
        raise CommandError('the site needs Sphinx and MyST-NB: pip install -e ".[site]"')
    if out.exists() and not (out.is_dir() and ((out / ".buildinfo").is_file() or not any(out.iterdir()))):
        raise CommandError(f"{out} holds something that is no site: name another folder with --out")
    out.mkdir(parents=True, exist_ok=True)
    source = root / GATHERED
    gather(root, source, at_once)
    from sphinx.cmd.build import build_main

    # -E: what Sphinx keeps of a build lacks the entries of the search.
    arguments = ["-q", "-E", "-W", "--keep-going", "-j", "2", "-d", str(root / "build" / "site-doctrees")]
    if build_main([*arguments, str(source), str(out)]) != 0:
        raise CommandError("Sphinx was not content with the pages; see above")


def gather(root: Path, source: Path, at_once: int) -> None:
    """Lay out what Sphinx reads in the folder `source`, which is made anew: the pages of site/, docs, lessons."""
    shutil.rmtree(source, ignore_errors=True)
    shutil.copytree(root / SOURCES, source)
    shutil.copytree(root / "docs", source / "docs")
    for file in (source / "docs").glob("*.md"):
        file.write_text(_links_that_hold(file), encoding="utf-8")
    if finished.records(root):
        drawn, page = finished.picture(root), source / Path(finished.PAGE).name
        (source / finished.PICTURE).write_bytes(drawn.png())
        text = page.read_text(encoding="utf-8").replace(finished.BEGIN, f"![{drawn.alt}]({finished.PICTURE})")
        page.write_text(text, encoding="utf-8")
    (source / "lessons").mkdir()
    _write_lessons(root, source, at_once)


def _write_lessons(root: Path, source: Path, at_once: int) -> None:
    import nbformat

    from unrolled.notebook import cells
    from unrolled_grader.authoring import executed
    from unrolled_grader.authoring.site import pages, record

    install = notebooks.read_address(root).install()
    measurements = (root / "docs" / "measurements.md").read_text(encoding="utf-8")
    for name, result in executed.lessons(root, notebooks.find_lessons(root), at_once).items():
        if result.errors or result.stopped:
            raise CommandError(f"the solution of {name} did not run through: {result.stopped or result.errors[0]}")
        released = root / notebooks.NOTEBOOKS / name / f"{name}.ipynb"
        shutil.copyfile(released, source / "lessons" / f"{name}.learner.ipynb")
        figures = source / "extra" / pages.FIGURES
        found = record.of_lesson(name, (one.report() for one in result.reports.values()), measurements)
        page = pages.page(cells.read(released), result.notebook, name, figures, install, found)
        nbformat.write(page, source / "lessons" / f"{name}.ipynb")


def _links_that_hold(file: Path) -> str:
    """A page of docs/ whose links to files that are not on the site are plain text."""

    def keep(found: re.Match[str]) -> str:
        target = found[2].partition("#")[0]
        elsewhere = not target or "://" in target or (file.parent / target).is_file()
        return found[0] if elsewhere else found[1]

    return LINK.sub(keep, file.read_text(encoding="utf-8"))


def add(subparsers: Subparsers) -> None:
    """Add the `unrolled site` command."""
    parser = subparsers.add_parser("site", help="build a static site of all lessons, to read without installing")
    parser.add_argument("--out", type=folder, metavar="DIR", help=f"the folder for it (default: {OUT.as_posix()})")
    parser.add_argument("--at-once", type=count, default=1, metavar="N", help="lessons to run at a time (default: 1)")
    parser.set_defaults(run=_command)


def _command(arguments: argparse.Namespace) -> int:
    root = checkout.find()
    out = arguments.out or root / OUT
    build(root, out, arguments.at_once)
    print(f"The site is in {out}; open {out / 'index.html'} in a browser")
    return 0
