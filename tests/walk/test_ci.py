"""What continuous integration asks of a bare machine. Everything outside the script is a stand-in."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.skipif(os.name == "nt", reason="continuous integration runs on Linux")

TOOLS = ("bash", "cat", "dirname", "env", "find", "grep")


def script(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)


class Machine:
    """A folder with .ci/run and a PATH that holds little else."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.bin = folder, folder / "bin"
        self.bin.mkdir()
        (folder / ".ci").mkdir()
        for file in ("run", "lacks"):
            shutil.copy(ROOT / ".ci" / file, folder / ".ci" / file)
        for tool in TOOLS:
            found = shutil.which(tool)
            assert found is not None
            (self.bin / tool).symlink_to(found)
        for tool in ("apt-get", "make"):
            self.has(tool, f'echo {tool} "$@" >> {folder}/log')
        self.has("id", "echo 0")
        script(self.folder / ".ci" / "colab", f'echo colab "$@" >> {self.folder}/log')

    def has(self, command: str, does: str = "exit 0") -> None:
        script(self.bin / command, does)

    def run(self, name: str = "run", *arguments: str) -> subprocess.CompletedProcess[str]:
        env = {"PATH": str(self.bin), "HOME": str(self.folder)}
        return subprocess.run([self.folder / ".ci" / name, *arguments], env=env, capture_output=True, text=True)

    def lacks(self, extra: str) -> str:
        return self.run("lacks", extra).stdout

    @property
    def log(self) -> list[str]:
        return (self.folder / "log").read_text(encoding="utf-8").splitlines()


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


SET_UP = ["colab --set-up", "make .venv/.dev"]
"""What is made side by side, sorted."""
TESTS = ["make test", "make test-all"]


def test_a_bare_machine_gets_what_is_missing_and_all_tests_run(machine):
    assert machine.run().returncode == 0
    update, install, *rest = machine.log
    assert update.startswith("apt-get update")
    assert {"python3", "python3-venv", "chromium", "bubblewrap", "g++"} <= set(install.split())
    assert "make" not in install.split()[2:], "it is there"
    assert (sorted(rest[:2]), rest[2:]) == (SET_UP, TESTS)


@pytest.mark.parametrize(("file", "says"), [(".ci/lacks", ""), ("bin/id", "echo 1000")], ids=["nothing", "root"])
def test_nothing_is_installed_where_nothing_lacks_or_nothing_can_be(machine, file, says):
    script(machine.folder / file, says)
    assert machine.run().returncode == 0
    assert (sorted(machine.log[:2]), machine.log[2:]) == (SET_UP, TESTS)


@pytest.mark.parametrize(
    ("user", "extra", "expected"),
    [
        (0, "lab", "apt-get install python3 python3-venv"),
        (1000, "lab", "sudo apt-get install python3 python3-venv"),
        (1000, "grading", "sudo apt-get install python3 python3-venv bubblewrap"),
    ],
)
def test_one_line_gets_what_a_set_up_lacks(machine, user, extra, expected):
    machine.has("id", f"echo {user}")
    assert machine.lacks(extra) == f"{expected}\n"
    for command in ("bwrap", "python3"):
        machine.has(command)
    assert machine.lacks(extra) == ""


@pytest.mark.parametrize("fails", TESTS)
def test_failing_tests_fail_and_the_others_run(machine, fails):
    machine.has("make", f'echo make "$@" >> {machine.folder}/log; [ "make $*" != "{fails}" ] || exit 2')
    assert machine.run().returncode == 2
    assert machine.log[-2:] == TESTS
