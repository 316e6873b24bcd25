"""The floors of the house: a module of the library imports only from floors below its own (or its own package).

The grader has rooms, each of which imports only from those before it. Nowhere do modules import each other in a circle.
"""

import graphlib
import subprocess
import sys
from pathlib import Path

import pytest
from imports import PACKAGES, graph, imported, module_name

LIBRARY, GRADER = PACKAGES["unrolled"], PACKAGES["unrolled_grader"]
FLOORS = (
    {"device"},
    {"simgpu", "kernels", "data", "timing", "records"},
    {"ops", "jit"},
    {"nn"},
    {"parallel"},
    {"show"},
    {"checks", "profile"},
    {"notebook"},
    {"journal"},
    {"check", "doctor"},
    {"cli"},
)
ROOMS = ("authoring", "classroom", "box", "judge", "jobs", "receiving", "results")
DOORS = {"change", "commands", "demo", "export", "grading", "plugin"}
NEVER = {"unrolled_grader", "nbgrader", "torch", "jax", "jupytext"}


def floor_of(part: str) -> int:
    return next(number for number, floor in enumerate(FLOORS, 1) if part in floor)


def part_of(name: str) -> str | None:
    """The part of the library a dotted name belongs to: `unrolled.ops.conv` -> `ops`."""
    pieces = name.split(".")
    known = set().union(*FLOORS)
    return pieces[1] if pieces[0] == "unrolled" and len(pieces) > 1 and pieces[1] in known else None


FILES = sorted(path for path in LIBRARY.rglob("*.py") if path.parent != LIBRARY or path.stem != "__init__")
GRADERS = sorted(path for path in GRADER.rglob("*.py") if path.parent != GRADER or path.stem != "__init__")


def own_part(path: Path) -> str:
    return path.relative_to(LIBRARY).with_suffix("").parts[0]


def test_every_module_has_a_floor():
    assert {own_part(path) for path in FILES} <= set().union(*FLOORS)


def imports(files, package):
    """Each file with each name that it imports."""
    return ((path, name) for path in files for name in imported(path, package))


def test_a_module_imports_from_floors_below():
    for path, name in imports(FILES, "unrolled"):
        assert name.split(".")[0] not in NEVER, f"{path} imports {name}"
        own, other = own_part(path), part_of(name)
        if other and other != own:
            assert floor_of(other) < floor_of(own), f"{path} (floor {floor_of(own)}) imports {name}"


EXERCISES = LIBRARY / "checks" / "exercises"


def test_a_lesson_asks_by_its_own_specs_and_by_those_of_lessons_before():
    for path, name in imports(EXERCISES.rglob("*.py"), "unrolled"):
        if name.startswith("unrolled.checks.exercises."):
            assert name.split(".")[3] <= path.relative_to(EXERCISES).parts[0], f"{path} imports {name}"


def test_the_grader_has_seven_rooms_and_the_doors():
    assert {path.parent.name for path in GRADER.glob("*/__init__.py")} == set(ROOMS)
    assert {path.stem for path in GRADER.glob("*.py")} == DOORS | {"__init__"}


def room_of(name: str) -> int:
    """Where the room of a module stands in the row: `unrolled_grader.judge.race` -> 3. The doors come last."""
    pieces = name.split(".")
    return ROOMS.index(pieces[1]) if pieces[1] in ROOMS else len(ROOMS)


def test_a_room_of_the_grader_imports_from_those_before_it():
    for path, name in imports(GRADERS, "unrolled_grader"):
        if name.startswith("unrolled_grader."):
            assert room_of(name) <= room_of(module_name(path, "unrolled_grader")), f"{path} imports {name}"


@pytest.mark.parametrize("package", PACKAGES)
def test_no_modules_import_each_other_in_a_circle(package):
    graphlib.TopologicalSorter(graph(package)).prepare()  # names a circle


@pytest.mark.parametrize(("module", "light"), [("unrolled", True), ("unrolled.show", False)])
def test_importing_unrolled_loads_numpy_and_the_standard_library_only(module, light):
    program = (
        f"import sys, numpy; before = set(sys.modules); import {module}; "
        "print(*{name.split('.')[0] for name in set(sys.modules) - before})"
    )
    loaded = set(subprocess.check_output([sys.executable, "-c", program], text=True).split())
    heavier = loaded - set(sys.stdlib_module_names) - {"unrolled", "numpy"}
    assert (not heavier) == light, heavier
