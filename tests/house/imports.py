"""What the files of a package import from it, read from their text: inside functions too, nothing is run."""

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = {"unrolled": ROOT / "lib" / "unrolled", "unrolled_grader": ROOT / "grader" / "unrolled_grader"}


def module_name(file: Path, package: str) -> str:
    """The dotted name of a file of the package, such as `unrolled.ops.conv`; a folder's for its `__init__.py`."""
    parts = file.relative_to(PACKAGES[package]).with_suffix("").parts
    return ".".join([package, *(part for part in parts if part != "__init__")])


def modules(package: str) -> dict[str, Path]:
    """Every module of the package by its dotted name."""
    return {module_name(file, package): file for file in sorted(PACKAGES[package].rglob("*.py"))}


@cache
def imported(file: Path, package: str) -> set[str]:
    """Absolute dotted names of everything a file imports: `from a.b import c` gives `a.b.c`."""
    own = [package, *file.relative_to(PACKAGES[package]).parts[:-1]]
    names: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = own[: len(own) - node.level + 1] if node.level else []
            module = ".".join([*base, *filter(None, [node.module])])
            names |= {f"{module}.{alias.name}" for alias in node.names}
    return names


def graph(package: str) -> dict[str, set[str]]:
    """Which modules of the package each of its modules imports."""
    known = modules(package)

    def module(name: str) -> str:
        return name if name in known else name.rpartition(".")[0]

    return {
        name: ({module(other) for other in imported(file, package)} & set(known)) - {name}
        for name, file in known.items()
    }
