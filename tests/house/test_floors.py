"""The floors of the house: a module of the library imports only from floors below its own (or its own package)."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

LIBRARY = Path(__file__).resolve().parents[2] / "lib" / "unrolled"
FLOORS = (
    {"device", "simgpu", "syllabi"},
    {"frontend", "gallery", "handin", "ops", "kernels", "data", "timing", "records", "upgrade"},
    {"nn", "show"},
    {"checks", "journal", "profile", "submission"},
    {"check", "notebooks", "doctor", "cli"},
)
# On one floor, and one-way: the simulated GPU registers itself; operations have kernels of their own on a GPU; the
# journal keeps reports of checks and hands in; the command uses all of its floor.
BESIDE = {
    ("simgpu", "device"),
    ("ops", "kernels"),
    ("journal", "checks"),
    ("journal", "submission"),
    ("submission", "checks"),
    ("cli", "check"),
    ("cli", "notebooks"),
    ("cli", "doctor"),
}
NEVER = {"unrolled_grader", "nbgrader", "torch", "jax", "jupytext"}


def floor_of(part: str) -> int:
    return next(number for number, floor in enumerate(FLOORS, 1) if part in floor)


def imported_names(path: Path) -> set[str]:
    """Absolute dotted names of everything a file imports, inside functions too."""
    package = ["unrolled", *path.relative_to(LIBRARY).parts[:-1]]
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *filter(None, [node.module])])
            names |= {f"{module}.{alias.name}" for alias in node.names}
    return names


def part_of(name: str) -> str | None:
    """The part of the library a dotted name belongs to: `unrolled.ops.conv` -> `ops`."""
    pieces = name.split(".")
    known = set().union(*FLOORS)
    return pieces[1] if pieces[0] == "unrolled" and len(pieces) > 1 and pieces[1] in known else None


FILES = sorted(path for path in LIBRARY.rglob("*.py") if path.parent != LIBRARY or path.stem != "__init__")


def own_part(path: Path) -> str:
    return path.relative_to(LIBRARY).with_suffix("").parts[0]


def test_every_module_has_a_floor():
    assert {own_part(path) for path in FILES} <= set().union(*FLOORS)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(LIBRARY)))
def test_a_module_imports_from_floors_below(path):
    own = own_part(path)
    for name in imported_names(path):
        assert name.split(".")[0] not in NEVER, f"{path.name} imports {name}"
        other = part_of(name)
        if other and other != own and (own, other) not in BESIDE:
            assert floor_of(other) < floor_of(own), f"{path.name} (floor {floor_of(own)}) imports {name}"


@pytest.mark.parametrize(("module", "light"), [("unrolled", True), ("unrolled.show", False)])
def test_importing_unrolled_loads_numpy_and_the_standard_library_only(module, light):
    program = (
        f"import sys, numpy; before = set(sys.modules); import {module}; "
        "print(*{name.split('.')[0] for name in set(sys.modules) - before})"
    )
    loaded = set(subprocess.check_output([sys.executable, "-c", program], text=True).split())
    heavier = loaded - set(sys.stdlib_module_names) - {"unrolled", "numpy"}
    assert (not heavier) == light, heavier
