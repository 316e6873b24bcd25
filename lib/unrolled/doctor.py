"""What this machine offers to the course: `unrolled doctor` prints it, a bug report quotes it.

`examine` gathers plain data, `table` turns it into text. Nothing here changes the machine.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import unrolled

Facts = dict[str, Any]

SANDBOX = ["--unshare-all", "--ro-bind", "/", "/", "true"]
"""What bubblewrap must be able to do: run a program in namespaces of its own."""
COMMIT = "UNROLLED_COMMIT"
"""The environment variable that names the commit to setup.py, which finds no repository in a copy of the tree."""
QUIET_EXTRAS = ("dev", "peers")
"""Extras whose absence is nothing to tell a learner."""


def examine() -> Facts:
    """Return everything there is to tell, ready for JSON. `problems` holds what keeps the course from working."""
    from unrolled import data, device

    rows = packages()
    ready = [entry for entry in data.available() if entry.ready()]
    return {
        "unrolled": release(),
        "python": {"version": platform.python_version(), "executable": sys.executable, "platform": platform.platform()},
        "cores": cores(),
        "packages": rows,
        "blas": blas(),
        "device": device.describe(),
        "sandbox": sandbox(),
        "data": [{"name": entry.name, "about": entry.about, "source": entry.source} for entry in ready],
        "problems": list(filter(None, map(_problem, rows))),
    }


def release() -> str:
    """Return the version, with its commit where that is known: from the wheel, or from git in a checkout."""
    library = Path(unrolled.__file__).absolute().parent
    baked = library / "commit.txt"  # setup.py writes it
    name = baked.read_text(encoding="utf-8") if baked.is_file() else commit(library.parent.parent)
    return f"{unrolled.__version__} ({name})" if name else unrolled.__version__


def commit(root: Path) -> str:
    """Return the name of the commit in a repository's folder, with "-dirty" where files differ; "" without git."""
    if not (root / ".git").exists():  # a repository around it is somebody else's
        return ""
    command = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    try:
        return subprocess.run(command, capture_output=True, text=True).stdout.strip()
    except OSError:
        return ""


def cores() -> dict[str, int]:
    """Return how many cores the machine has, and how many this process may use."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {"machine": os.cpu_count() or 1, "usable": usable or 1}


def packages() -> list[Facts]:
    """Return each package that the course names, the versions wanted and installed; `extra` is None for the core."""
    from packaging.requirements import Requirement

    try:
        about = metadata.metadata("unrolled")
    except metadata.PackageNotFoundError:
        return []
    extras = ["", *(about.get_all("Provides-Extra") or [])]
    rows: dict[str, Facts] = {}
    for requirement in map(Requirement, metadata.requires("unrolled") or []):
        extra = next((x for x in extras if not requirement.marker or requirement.marker.evaluate({"extra": x})), None)
        if extra is None or requirement.name in ("unrolled", *rows):
            continue
        version = _installed(requirement.name)
        fits = version is None or requirement.specifier.contains(version, prereleases=True)
        row = {"name": requirement.name, "wanted": str(requirement.specifier), "version": version, "fits": fits}
        rows[requirement.name] = {**row, "extra": extra or None}
    return list(rows.values())


def blas() -> list[Facts]:
    """Return the BLAS libraries loaded with NumPy and how many threads each uses; an empty list if none can be seen."""
    import numpy as np
    import threadpoolctl

    np.ones((2, 2)) @ np.ones((2, 2))
    found = [lib for lib in threadpoolctl.threadpool_info() if lib["user_api"] == "blas"]
    return [{"library": lib["internal_api"], "version": lib["version"], "threads": lib["num_threads"]} for lib in found]


def sandbox() -> Facts:
    """Return {"works", "why"}: whether bubblewrap can isolate a program, as the grader needs, and if not, why."""
    if sys.platform != "linux":
        return {"works": False, "why": "bubblewrap is for Linux; grade on a Linux machine"}
    bwrap = shutil.which("bwrap")
    if bwrap is None:
        return {"works": False, "why": "bubblewrap is missing: sudo apt-get install bubblewrap"}
    try:
        result = subprocess.run([bwrap, *SANDBOX], capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired) as error:
        return {"works": False, "why": f"{bwrap} cannot be run: {error}"}
    if result.returncode == 0:
        return {"works": True, "why": None}
    tail = result.stderr.strip().splitlines()[-1:] or [f"exit code {result.returncode}"]
    reason = "this system forbids user namespaces, as Docker and Ubuntu 24.04 do unless told otherwise"
    return {"works": False, "why": f"{tail[0]} ({reason})" if "ermi" in tail[0] or "space" in tail[0] else tail[0]}


def table(facts: Facts) -> str:
    """Return the facts as text for a reader."""
    python, core = facts["python"], facts["cores"]
    blas = [f"{lib['library']} {lib['version']}, {lib['threads']} threads" for lib in facts["blas"]]
    rows = [row for row in facts["packages"] if row["version"] or row["extra"] not in QUIET_EXTRAS]
    lines = [
        _line("unrolled", facts["unrolled"]),
        _line("Python", f"{python['version']}   {python['executable']}"),
        _line("system", python["platform"]),
        _line("cores", f"{core['usable']} of {core['machine']}"),
        *[_line("BLAS", text) for text in blas or ["its threads cannot be controlled here"]],
        _line("GPU", facts["device"].get("gpu") or f"none: {facts['device'].get('why')}"),
        _line("sandbox", "works (bubblewrap)" if facts["sandbox"]["works"] else f"none: {facts['sandbox']['why']}"),
        *[_line("data", f"{entry['name']}: {entry['about']}, from {entry['source']}") for entry in facts["data"]],
        "packages",
        *[f"  {row['name']:<16} {_state(row)}" for row in rows],
        *[f"problem: {problem}" for problem in facts["problems"]],
    ]
    return "\n".join(lines)


def _line(name: str, text: Any) -> str:
    return f"{name:<12} {text}"


def _state(row: Facts) -> str:
    if row["version"] is None:
        return f"not installed (extra {row['extra']})" if row["extra"] else "missing"
    return str(row["version"]) if row["fits"] else f"{row['version']}, but {row['wanted']} is wanted"


def _problem(row: Facts) -> str:
    """What is wrong with a package: a core package is missing, or any package has the wrong version."""
    bad = not row["fits"] or (row["version"] is None and row["extra"] is None)
    return f"{row['name']}: {_state(row)}" if bad else ""


def _installed(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
