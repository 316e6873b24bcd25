"""`unrolled prove EXERCISE… | --lesson NN | --all`: whether a check refuses every wrong answer that a machine can make.

Of exercises that are named it builds the lesson, compares its minutes, and runs their part of `tests/lessons`: the
solution earns everything and the stub nothing, each usual mistake is recognized, a speed has room on both sides, and
hints have their form. Notebooks are not run as a whole. Then it tries the check with mutants of the solution, and shows
those that pass and are not right. `benchmarks/results/proofs.json` keeps what `benchmarks/proofs.py` counted.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import hashlib
import importlib.util
import inspect
import json
import multiprocessing
import os
import platform
import subprocess
import sys
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unrolled.cli import CommandError, Subparsers, checkout
from unrolled.notebook import cells
from unrolled_grader.authoring import minutes, notebooks, variants

if TYPE_CHECKING:
    from nbformat import NotebookNode

    from unrolled.checks import Spec
    from unrolled_grader.authoring import proofs

TESTS = [f"tests/lessons/test_{name}.py" for name in ("four_facts", "mistakes", "hints")]
RECORD = Path("benchmarks/results/proofs.json")
SHARES = 2  # of an exercise's mutants: they are tried side by side
MEMORY = 8 << 30  # bytes of address space that a mutant may take
NAMED = 0.85  # share of the refused mutants that have to be refused in words for the cause
SHOWN = 5  # holes of an exercise, and kinds of mutants that have no such words


def add(subparsers: Subparsers) -> None:
    """Add the `unrolled prove` command."""
    parser = subparsers.add_parser("prove", help="try checks with wrong answers made by machine")
    parser.add_argument("exercises", metavar="EXERCISE", nargs="*", help="names of checks: conv2d_gemm")
    parser.add_argument("--lesson", metavar="NN", help="the mutants of all exercises of a lesson, without its tests")
    parser.add_argument("--all", action="store_true", help="the mutants of all exercises and variants")
    parser.add_argument("--changed", action="store_true", help="of these only what is not in the record as it is now")
    parser.add_argument("--seeds", type=int, default=3, help="how often each mutant is tried (%(default)s)")
    parser.add_argument("--draws", type=int, default=2000, help="inputs to compare what passes (%(default)s)")
    parser.set_defaults(run=_command)


def _command(arguments: argparse.Namespace) -> int:
    root = checkout.find()
    lessons = variants.checks(root)
    names = _named(arguments, lessons)
    if arguments.changed:
        names = changed(root, names)
    failed = bool(arguments.exercises) and _tested(root, {name: lessons[name] for name in arguments.exercises})
    found = list(proved(root, names, arguments.seeds, arguments.draws))
    return int(failed or any(proof.holes for proof in found))


def _named(arguments: argparse.Namespace, lessons: dict[str, str]) -> list[str]:
    """The exercises that are asked for. Raises CommandError for one that there is not, and for none."""
    for name in arguments.exercises:
        if name not in lessons:
            close = " or ".join(difflib.get_close_matches(name, lessons))
            raise CommandError(f"there is no exercise {name!r}" + (f"; did you mean {close}?" if close else ""))
    if arguments.exercises:
        return list(arguments.exercises)
    if arguments.lesson:
        if names := [name for name, lesson in lessons.items() if lesson.startswith(arguments.lesson)]:
            return names
        raise CommandError(f"no lesson begins with {arguments.lesson!r}")
    if arguments.all or arguments.changed:
        return list(lessons)
    raise CommandError("name exercises, or --lesson NN, --changed or --all")


def _tested(root: Path, lessons: dict[str, str]) -> bool:
    """Build the lessons of these exercises, compare minutes and run the exercises' tests: whether something failed."""
    if importlib.util.find_spec("pytest") is None or importlib.util.find_spec("hypothesis") is None:
        raise CommandError("this runs tests, and pytest is not installed: make .venv/.dev")
    failed = False
    for change in notebooks.build(root, sorted(set(lessons.values()))):
        print(f"made {change.path}")
    for lesson in sorted(set(lessons.values())):
        found = minutes.of_lesson(root, lesson)
        print(
            f"{lesson}: {found}" + ("" if found.agree else "; state what they add up to, within a quarter"), flush=True
        )
        failed |= not found.agree
    for name in lessons:
        command = [sys.executable, "-m", "pytest", "-q", "--no-header", "-p", "no:cacheprovider", "--exercise", name]
        failed |= subprocess.run([*command, *TESTS], cwd=root, check=False).returncode != 0
    return failed


def proved(
    root: Path, names: Sequence[str], seeds: int, draws: int, shares: int = SHARES, **named: float
) -> Iterator[proofs.Proof]:
    """Yield the proofs of exercises, each of shares that have a process each, and print what they say.

    `seconds` are those of CPU time that a share has.
    """
    from unrolled_grader.authoring import proofs

    if platform.machine() == "x86_64":  # with AVX-512 Winograd gains less than `choose_algorithm` forgives
        os.environ.setdefault("OPENBLAS_CORETYPE", "Haswell")
    parts = [slice(first, None, shares) for first in range(shares)]
    workers = max(1, min(len(names) * shares, os.cpu_count() or 1))
    with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), _bounded) as pool:
        for part in [
            [pool.submit(_proof, root, name, each, seeds, draws, **named) for each in parts] for name in names
        ]:
            yield _shown(proofs.joined([each.result() for each in part]))


def _shown(proof: proofs.Proof) -> proofs.Proof:
    """Print a proof, its holes, and what has no cause in words where that is much."""
    print(proof, flush=True)
    for hole in proof.holes[:SHOWN]:
        print(f"\n{hole}\n")
    for kind, count in proof.unnamed.most_common(SHOWN if proof.named < NAMED * proof.refused else 0):
        print(f"  no cause in words: {count} x {kind}; such as\n{_indented(proof.examples[kind])}")
    return proof


def _bounded() -> None:
    import resource  # not on Windows

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def _proof(root: Path, name: str, share: slice, seeds: int, draws: int, **named: float) -> proofs.Proof:
    from unrolled.timing.blocks import blas_threads
    from unrolled_grader.authoring import proofs, sample

    warnings.simplefilter("ignore")
    with open(os.devnull, "w", encoding="utf-8") as nothing, contextlib.redirect_stdout(nothing), blas_threads(1):
        try:
            theirs = sample.changed(root, "another_way", variants.checks(root)[name])
            others = [theirs[name]] if name in theirs else []
            spec, source = _spec(name), cells_of(root, name)
            return proofs.prove(name, spec, source, others=others, seeds=seeds, draws=draws, share=share, **named)
        except ValueError as error:
            return proofs.Proof(name, holes=[f"{name}: {error}"])


def _spec(name: str) -> Spec:
    from unrolled import checks

    return checks.all_specs()[name]


def cells_of(root: Path, name: str) -> list[NotebookNode]:
    """Return the cells of an exercise's solved lesson; of a variant with its own behind them."""
    lesson = variants.checks(root)[name]
    found = list(cells.read(root / "solutions" / lesson / f"{lesson}.ipynb").cells)
    file = root / "lessons" / variants.FOLDER / f"{lesson[:2]}_{name}.py"
    if file.exists():
        import jupytext

        found += jupytext.read(file, fmt="py:percent").cells
    return found


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.splitlines())


def content(root: Path, name: str) -> str:
    """Return a hash of an exercise's cell, and of the modules that its spec is declared with."""
    from unrolled.checks import answers, exercises

    source = next(cell.source for cell in cells_of(root, name) if cells.grade_id(cell) == name)
    modules, waiting = set[str](), {function.__module__ for function in answers.functions_in([_spec(name)])}
    ours = {module for module in sys.modules if module.startswith(exercises.__name__)}
    waiting |= {module for module in ours if name in vars(sys.modules[module])}  # where the spec itself stands
    while waiting:
        if (module := waiting.pop()) in ours and module not in modules:
            modules.add(module)
            used = vars(sys.modules[module]).values()
            waiting |= {str(getattr(each, "__module__", None) or getattr(each, "__name__", "")) for each in used}
    digest = hashlib.sha256(source.encode())
    for file in sorted(inspect.getsourcefile(sys.modules[module]) or "" for module in modules):
        digest.update(Path(file).read_bytes())
    return digest.hexdigest()[:16]


def changed(root: Path, names: Sequence[str]) -> list[str]:
    """Return those of the exercises whose cell or spec is not what the record tells of; no trainings of minutes."""
    known = _recorded(root)
    short = (name for name in names if _spec(name).limit is None)
    return [name for name in short if known.get(name, {}).get("content") != content(root, name)]


def _recorded(root: Path) -> dict[str, dict[str, Any]]:
    file = root / RECORD
    rows = json.loads(file.read_text(encoding="utf-8"))["rows"] if file.exists() else []
    return {row["name"]: row for row in rows}
