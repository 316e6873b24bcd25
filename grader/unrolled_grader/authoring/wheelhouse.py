"""The course's own wheel, and a folder that holds everything for a classroom without a network.

`unrolled wheel` builds the wheel that belongs to a tag. `unrolled wheelhouse` lets pip choose and download the wheels
of JupyterLab and the library for each system, by pip's own platform tags. pip reads a package's conditions ("only on
Windows", "only before Python 3.11") as those of the machine it runs on; what the target machine needs besides is found
here, and asked for in the next round.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import unrolled
from unrolled import doctor
from unrolled.cli import DATA_SETS, CommandError, Subparsers, checkout, folder
from unrolled_grader.authoring import notebooks

# What the wheel is made of.
PARTS = (
    *("pyproject.toml", "setup.py", "README.md", "LICENSE", "lib", "notebooks", "nbgrader_config.py"),
    *("grader/nbgrader_config.py", "grader/sample_class", "grader/unrolled_grader"),
)
EXTRA = "lab"
SUMS = "SHA256SUMS"
PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
ROUNDS = 5  # how often pip is asked again for what a target machine needs besides; two rounds are usual


@dataclass(frozen=True)
class System:
    """A kind of machine: pip's platform tags, and what packages' conditions ask of it."""

    name: str
    about: str
    tags: tuple[str, ...]
    markers: Mapping[str, str] = field(hash=False)


def _markers(sys_platform: str, system: str, machine: str, os_name: str = "posix") -> dict[str, str]:
    host = {"sys_platform": sys_platform, "platform_system": system, "platform_machine": machine, "os_name": os_name}
    python = {"implementation_name": "cpython", "platform_python_implementation": "CPython"}
    return {**host, **python, "platform_release": "", "platform_version": ""}


SYSTEMS = (
    System(
        "linux-x86_64",
        "Linux, x86_64, with glibc 2.28 or newer (Debian 10, Ubuntu 18.10, RHEL 8)",
        (*(f"manylinux_2_{minor}_x86_64" for minor in range(28, 16, -1)), "manylinux2014_x86_64", "linux_x86_64"),
        _markers("linux", "Linux", "x86_64"),
    ),
    System(
        "macos-arm64", "macOS 12 or newer, Apple silicon", ("macosx_12_0_arm64",), _markers("darwin", "Darwin", "arm64")
    ),
    System("macos-x86_64", "macOS 12 or newer, Intel", ("macosx_12_0_x86_64",), _markers("darwin", "Darwin", "x86_64")),
    System("windows-x86_64", "Windows, x86_64", ("win_amd64",), _markers("win32", "Windows", "AMD64", "nt")),
)


@dataclass(frozen=True)
class Target:
    """A system with a Python, such as 3.11."""

    system: System
    python: str

    @property
    def requirements(self) -> str:
        return f"requirements/{self.system.name}-py{self.python.replace('.', '')}.txt"

    @property
    def environment(self) -> dict[str, str]:
        """What packages' conditions are held against."""
        return {**self.system.markers, "python_version": self.python, "python_full_version": f"{self.python}.0"}

    def options(self) -> list[str]:
        """Return the options that tell pip to choose for this machine."""
        tags = [word for tag in self.system.tags for word in ("--platform", tag)]
        return ["--only-binary=:all:", "--implementation", "cp", "--python-version", self.python, *tags]

    def __str__(self) -> str:
        return f"{self.system.name}, Python {self.python}"


def build_wheel(root: Path, into: Path, *, isolated: bool = True) -> Path:
    """Build the course's wheel from a copy of what it is made of, and return its path in `into`.

    No earlier build is in it. The time stamps are those of the last commit: the same tree gives the same bytes. Without
    `isolated`, the setuptools of this environment build it. Raises CommandError with what pip says.
    """
    into.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="unrolled-wheel-") as scratch:
        source, made = Path(scratch, "course"), Path(scratch, "made")
        for part in PARTS:
            _copy(root / part, source / part)
        options = [] if isolated else ["--no-build-isolation"]
        _pip("wheel", "--quiet", "--no-deps", *options, "--wheel-dir", str(made), str(source), **_of_git(root))
        (wheel,) = made.glob("unrolled-*.whl")
        return Path(shutil.copy(wheel, into / wheel.name))


def collect(into: Path, wheel: Path, targets: Sequence[Target], data: Sequence[str] = ()) -> dict[Target, str]:
    """Fill `into` with everything for these targets; return what could not be served, with the reason.

    A wheelhouse that is there is replaced. Raises CommandError if `into` holds anything else.
    """
    check(into, data)
    into.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".wheelhouse-", dir=into.parent) as scratch:
        house = Path(scratch, "house")
        for name in data:  # first: a mirror that does not answer must not cost the wheels
            _bring(name, house / "data")
        lacking = {}
        for target in targets:
            try:
                _serve(house, wheel, target)
            except CommandError as reason:
                lacking[target] = str(reason)
        served = [target for target in targets if target not in lacking]
        (house / "README.txt").write_text(readme(served, lacking, data), encoding="utf-8", newline="\n")
        (house / SUMS).write_text(sums(house), encoding="utf-8", newline="\n")
        shutil.rmtree(into, ignore_errors=True)
        os.replace(house, into)
    return lacking


def check(into: Path, data: Sequence[str]) -> None:
    """Raise CommandError for a folder that holds something else than a wheelhouse, and for unknown data sets."""
    if (into / "work").exists():
        raise CommandError(f"{into / 'work'} is somebody's work: name another folder with --into")
    if into.exists() and not (into / SUMS).is_file() and any(into.iterdir()):
        raise CommandError(f"{into} holds something that is no wheelhouse: name another folder with --into")
    if unknown := [name for name in data if name not in DATA_SETS]:
        raise CommandError(f"there is no data set {unknown[0]!r:.60} to bring along; there are {', '.join(DATA_SETS)}")


def _serve(house: Path, wheel: Path, target: Target) -> None:
    """Download what a target needs, and write its requirements with the hash of every file. Raises CommandError."""
    wheels = house / "wheels"
    wheels.mkdir(parents=True, exist_ok=True)
    chosen = [(item["metadata"], item["download_info"]["url"]) for item in resolve(wheel, target)]
    pins = {f"{about['name']}=={about['version']}": url for about, url in chosen}
    if others := [pin for pin in pins if not pin.startswith("unrolled==")]:
        _pip("download", "--quiet", "--no-deps", *target.options(), "--dest", str(wheels), *others)
    shutil.copy(wheel, wheels / wheel.name)
    files = {pin: wheels / unquote(Path(urlsplit(url).path).name) for pin, url in pins.items()}
    lines = [f"{pin} --hash=sha256:{_sha256(file)}" for pin, file in files.items()]
    file = house / target.requirements
    file.parent.mkdir(exist_ok=True)
    file.write_text("\n".join(sorted(lines, key=str.lower)) + "\n", encoding="utf-8", newline="\n")


def resolve(wheel: Path, target: Target) -> list[dict[str, Any]]:
    """Return what pip would install on a target for `unrolled[lab]`: its report's entries. Raises CommandError."""
    wanted = [f"{wheel.absolute()}[{EXTRA}]"]
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory(prefix="unrolled-report-") as scratch:
            report = Path(scratch, "report.json")
            asked = ("--dry-run", "--ignore-installed", "--target", scratch, "--report", str(report))
            _pip("install", "--quiet", *asked, *target.options(), *wanted)
            items = json.loads(report.read_text(encoding="utf-8"))["install"]
        needed, missing = closure(items, target.environment)
        if not missing:
            return needed
        wanted += missing
    raise CommandError(f"pip does not come to an end: after {ROUNDS} rounds it still lacks {', '.join(missing)}")


def closure(items: Sequence[dict[str, Any]], environment: Mapping[str, str]) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the packages of pip's report that `unrolled[lab]` needs on that machine, and what else it requires."""
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    known: dict[str, dict[str, Any]] = {canonicalize_name(item["metadata"]["name"]): item for item in items}
    needed, missing = dict[str, dict[str, Any]](), dict[str, None]()
    seen = set[tuple[str, str]]()
    waiting = [("unrolled", ""), ("unrolled", EXTRA)]
    while waiting:
        name, extra = waiting.pop()
        if (name, extra) in seen:
            continue
        seen.add((name, extra))
        needed[name] = known[name]
        for asked in map(Requirement, needed[name]["metadata"].get("requires_dist", ())):
            if asked.marker is not None and not asked.marker.evaluate({**environment, "extra": extra}):
                continue
            other = canonicalize_name(asked.name)
            if other in known:
                waiting += [(other, each) for each in ("", *asked.extras)]
            else:
                asked.marker = None
                missing[str(asked)] = None
    return list(needed.values()), list(missing)


def readme(served: Iterable[Target], lacking: Mapping[Target, str], data: Sequence[str]) -> str:
    """Return README.txt, for the person who installs from the folder on a machine without a network."""
    blocks = [README.format(version=unrolled.__version__)]
    blocks += [_lines_for(target) for target in served]
    blocks += [f"NOT SERVED: {target}\n  {reason}" for target, reason in lacking.items()]
    if data:
        blocks.append(DATA.format(names=", ".join(data)))
    return "\n\n".join(blocks) + "\n"


README = """\
Unrolled {version}, for machines without a network
=================================================

Copy this folder to the machine, or open it from a shared one. Open a terminal in it and type
the lines below for your system. They make a folder .venv here, install into it from wheels/
alone, and open JupyterLab on copies of the lessons in work/. Every file is held against its
hash in requirements/. Python itself is not in this folder.

All lessons run on handwritten digits that come with scikit-learn: nothing is downloaded.

Is the copy whole? Linux: sha256sum --quiet -c SHA256SUMS    macOS: shasum -q -a 256 -c SHA256SUMS"""
DATA = """\
DATA: the folder data/ holds {names}. Before you start the lab, say where it is:
  Linux, macOS:  export UNROLLED_DATA="$PWD/data"
  Windows:       set UNROLLED_DATA=%CD%\\data"""


def _lines_for(target: Target) -> str:
    windows = target.system.name.startswith("windows")
    python, folder = ("py -", ".venv/Scripts") if windows else ("python", ".venv/bin")
    lines = (
        f"{target.system.about}; Python {target.python}\n"
        f"  {python}{target.python} -m venv .venv\n"
        f"  {folder}/python -m pip install --no-index --find-links wheels --require-hashes -r {target.requirements}\n"
        f"  {folder}/unrolled lab"
    )
    return lines.replace("/", "\\") if windows else lines


def sums(house: Path) -> str:
    """Return the content of SHA256SUMS, as `sha256sum` reads it."""
    files = sorted(file for file in house.rglob("*") if file.is_file() and file.name != SUMS)
    return "".join(f"{_sha256(file)}  {file.relative_to(house).as_posix()}\n" for file in files)


def _bring(name: str, into: Path) -> None:
    """A data set's files as they were published, in the form that UNROLLED_DATA asks for. Raises CommandError."""
    from unrolled.data import fetching

    (source,) = (one for one in fetching.SOURCES if one.name == name)
    try:
        files = fetching.given(source, tuple(source.files)) or fetching.fetched(source)
    except OSError as error:
        raise CommandError(str(error)) from error
    for file in files:
        _copy(file, into / source.folders[0] / file.name)


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info", ".*"))
    elif source.is_file():
        shutil.copy(source, target)
    else:
        raise CommandError(f"{source} is missing: this is not a whole checkout")


def _of_git(root: Path) -> dict[str, str]:
    """What a build is given of the last commit: its seconds, for time stamps, and its name. Nothing without git."""
    with contextlib.suppress(OSError, subprocess.CalledProcessError):
        command = ["git", "-C", str(root), "log", "-1", "--format=%ct"]
        seconds = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
        return {"SOURCE_DATE_EPOCH": seconds, doctor.COMMIT: doctor.commit(root)}
    return {}


def _pip(*arguments: str, **environment: str) -> None:
    """Run pip as it is configured here: mirrors, proxies and folders of wheels count. Raises CommandError."""
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", *arguments]
    env = {**os.environ, **environment}
    done = subprocess.run(command, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode:
        raise CommandError(reason_of(done.stderr or done.stdout))


def reason_of(text: str) -> str:
    """Return the lines in which pip says what is wrong, as one."""
    wrong = re.findall(r"^ERROR: (.*)$", text, re.MULTILINE) or text.strip().splitlines()[-1:]
    short = [re.sub(r"\(from versions: .{200,}\)", "(from versions: …)", line) for line in wrong]
    return f"pip: {' '.join(short)}" if short else "pip failed and says nothing"


def _sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def add(subparsers: Subparsers) -> None:
    """Add the `unrolled wheel` and `unrolled wheelhouse` commands."""
    wheel = subparsers.add_parser("wheel", help="build the course's wheel, and say where its release must have it")
    wheel.add_argument("--into", type=folder, metavar="DIR", help="default: dist/")
    wheel.set_defaults(run=_wheel)
    house = subparsers.add_parser("wheelhouse", help="collect everything for a classroom without a network")
    house.add_argument("--into", type=folder, metavar="DIR", help="default: dist/wheelhouse/")
    names, here = [system.name for system in SYSTEMS], f"{sys.version_info.major}.{sys.version_info.minor}"
    house.add_argument("--system", action="append", choices=names, help="only this one; may be repeated (default: all)")
    help_text = f"for this Python; may be repeated (default: {here})"
    house.add_argument("--python", action="append", choices=PYTHONS, help=help_text)
    house.add_argument("--data", action="append", default=[], metavar="NAME", help="a data set to bring, such as mnist")
    house.set_defaults(run=_wheelhouse, here=here)


def _wheel(arguments: argparse.Namespace) -> int:
    root = checkout.find()
    wheel = build_wheel(root, arguments.into or root / "dist")
    print(f"{wheel}  {wheel.stat().st_size / 1e6:.1f} MB\nsha256 {_sha256(wheel)}")
    address = notebooks.read_address(root)
    if address.github:
        print(f"The notebooks install {address.wheel()}: put the file into the release of the tag {address.tag}.")
    elif not address.repository:
        print('The notebooks look for it beside them, in wheels/, and on Colab in the folder "unrolled" of Drive.')
    return 0


def _wheelhouse(arguments: argparse.Namespace) -> int:
    root = checkout.find()
    into: Path = (arguments.into or root / "dist" / "wheelhouse").absolute()
    systems = [system for system in SYSTEMS if not arguments.system or system.name in arguments.system]
    targets = [Target(system, python) for python in arguments.python or [arguments.here] for system in systems]
    check(into, arguments.data)
    with tempfile.TemporaryDirectory(prefix="unrolled-own-") as scratch:
        wheel = build_wheel(root, Path(scratch))
        lacking = collect(into, wheel, targets, arguments.data)
    for target in targets:
        pins = into / target.requirements
        print(f"{target}: {lacking.get(target) or f'{len(pins.read_bytes().splitlines())} packages'}")
    size = sum(file.stat().st_size for file in into.rglob("*") if file.is_file())
    print(f"{into}: {size / 1e6:.0f} MB; README.txt there says how to install from it")
    return 1 if lacking else 0
