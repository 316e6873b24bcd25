"""`make` from nothing: what it says where something is missing, what it installs, what `clean` spares.

Interpreters and pip are stand-ins on PATH, so that nothing is downloaded and nothing is installed.
"""

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.skipif(
    os.name == "nt" or not shutil.which("make"), reason="Windows has no make; unrolled lab suffices"
)

NO_INDEX = {
    "PIP_CONFIG_FILE": os.devnull,
    "PIP_INDEX_URL": "http://127.0.0.1:9/simple",
    "PIP_EXTRA_INDEX_URL": "",
    "PIP_FIND_LINKS": "",
    "PIP_RETRIES": "0",
}
# A stand-in for .venv/bin/python: notes what it is asked to do and succeeds.
RECORDER = """\
#!/bin/sh
echo "$@" >> "$(dirname "$0")/asked"
"""


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """The files that `make` reads, in a folder of their own."""
    root = tmp_path / "house"
    (root / ".ci").mkdir(parents=True)
    for file in ("Makefile", "pyproject.toml", ".ci/venv", ".ci/lacks", ".ci/stage"):
        shutil.copy(ROOT / file, root / file)
    script(root / "tools" / "nvidia-smi", "#!/bin/sh\nexit 9\n")  # no GPU, even where there is one
    return root


def make(house: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    env = {key: value for key, value in os.environ.items() if not key.startswith(("MAKE", "PYTHON", "MFLAGS"))}
    env["PATH"] = f"{house / 'tools'}:{env['PATH']}"
    return subprocess.run(["make", *arguments], cwd=house, env={**env, **environment}, capture_output=True, text=True)


def messages(result: subprocess.CompletedProcess[str]) -> list[str]:
    """What the user reads, without make's own closing line."""
    return [line for line in (result.stdout + result.stderr).splitlines() if not line.startswith("make:")]


def script(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)
    return path


def calls(house: Path) -> str:
    log = house / ".venv" / "bin" / "asked"
    return log.read_text(encoding="utf-8") if log.exists() else ""


def test_without_a_target_make_lists_them(house):
    lines = make(house).stdout.splitlines()
    targets = {line.split()[1] for line in lines}
    assert {"lab", "demo", "build", "build-check", "test", "bench", "clean"} <= targets


OLD = 'import platform; sys.version_info = (3, 9, 2); platform.python_version = lambda: "3.9.2"'
BARE = 'sys.modules["ensurepip"] = None'


@pytest.mark.parametrize(
    ("pretends", "says"),
    [
        (None, "Python 3.10 or newer is needed and 'no-such-python' cannot be run"),
        (OLD, r"Python 3.10 or newer is needed, and .* is 3\.9\.2"),
        (BARE, "apt-get install python3-venv"),
    ],
    ids=["none", "an old one", "without ensurepip"],
)
def test_one_line_says_what_is_wrong_with_python(house, tmp_path, pretends, says):
    """A stand-in is this interpreter, except that it pretends something before each `-c CODE`."""
    python = "no-such-python"
    if pretends:
        code = f"import sys; code = sys.argv.pop(1); {pretends}; exec(code)"
        python = str(script(tmp_path / "bin" / "python3", f"#!/bin/sh\nexec {sys.executable} -c '{code}' \"$2\"\n"))
    result = make(house, "demo", f"PYTHON={python}")
    assert result.returncode != 0
    (line,) = messages(result)
    assert re.search(says, line)
    assert not (house / ".venv").exists()


def test_what_is_installed_and_how_long_it_takes_is_said_first(house):
    stand_in(house)
    for target, what in (("lab", "JupyterLab"), ("demo", "nbgrader")):
        line, *_, last = messages(make(house, target))
        assert line.startswith("Installing into .venv, once: ")
        assert what in line
        assert re.search(r"\d+ packages, \d+ MB; \d+ s of one core", line)
        assert re.fullmatch(r"Installed in \d+ s\.", last)


def with_tools(house: Path) -> None:
    """Stand-ins for all that the tests are run with."""
    stand_in(house)
    for tool in ("ruff", "mypy", "playwright"):
        script(house / ".venv" / "bin" / tool, RECORDER)
    (house / ".venv" / ".dev").touch()
    script(house / ".ci" / "lacks", "#!/bin/sh\necho sudo apt-get install some-package\n")


def test_what_the_tests_lack_is_said_in_one_line_and_they_run(house):
    with_tools(house)
    result = make(house, "test")
    assert result.returncode == 0
    assert result.stderr.count("sudo apt-get install some-package") == 1
    assert "tests/grader" in calls(house)


@pytest.mark.parametrize(("code", "passes"), [(0, True), (1, False), (3, True)])
def test_colabs_versions_count_unless_no_python_is_old_enough(house, code, passes):
    with_tools(house)
    script(house / ".ci" / "colab", f"#!/bin/sh\nexit {code}\n")
    assert (make(house, "test-all").returncode == 0) == passes


def test_each_folder_of_tests_is_run_by_one_of_the_two_targets(house):
    with_tools(house)
    script(house / ".ci" / "colab", "#!/bin/sh\n")
    run = {}
    for target in ("test", "test-all"):
        assert make(house, target).returncode == 0
        run[target] = set(re.findall(r"tests/\w+", calls(house)))
        (house / ".venv" / "bin" / "asked").unlink()
    folders = {f"tests/{file.parts[-2]}" for file in (ROOT / "tests").glob("*/test_*.py")}
    assert run["test"] | run["test-all"] == folders
    assert not run["test"] & run["test-all"]


def test_without_a_network_one_line_says_so(house):
    result = make(house, "lab", f"PYTHON={sys.executable}", **NO_INDEX)
    assert result.returncode != 0
    setting_up, line = messages(result)
    assert setting_up.startswith("Setting up .venv with Python 3.")
    assert "is there a network?" in line
    assert not (house / ".venv" / ".lab").exists(), "the next run must try again"


def stand_in(house: Path) -> None:
    script(house / ".venv" / "bin" / "python", RECORDER)
    script(house / ".venv" / "bin" / "unrolled", RECORDER)


def changed(path: Path, seconds: float) -> None:
    """Let a file have changed this long from now: files touched within one tick of the clock have the same time."""
    moment = time.time() + seconds
    os.utime(path, (moment, moment))


def test_lab_installs_once_with_cupy_where_a_driver_answers_and_starts_with_the_lesson(house):
    stand_in(house)
    assert make(house, "lab", "LESSON=02").returncode == 0
    assert "install -e .[lab]" in calls(house)
    assert "gpu" not in calls(house)
    assert calls(house).endswith("lab 02\n")
    before = calls(house).count("install -e")
    assert make(house, "lab").returncode == 0
    assert calls(house).count("install -e") == before
    (house / ".venv" / ".lab").unlink()
    script(house / "tools" / "nvidia-smi", "#!/bin/sh\necho GPU 0: a GPU\n")
    assert make(house, "lab").returncode == 0
    assert "install -e .[gpu]" in calls(house)


def test_a_larger_environment_serves_a_smaller_target_without_pip(house):
    stand_in(house)
    changed(house / "pyproject.toml", -60)
    (house / ".venv" / ".dev").touch()
    assert make(house, "lab").returncode == 0
    assert "install" not in calls(house)
    changed(house / "pyproject.toml", 60)
    assert make(house, "lab").returncode == 0
    assert "install -e .[lab]" in calls(house), "pyproject.toml has changed since"


def test_a_failing_pip_leaves_no_stamp(house):
    failing = 'case "$*" in *install*) exit 1;; esac\n'
    script(house / ".venv" / "bin" / "python", f"#!/bin/sh\n{failing}")
    result = make(house, "build")
    assert result.returncode != 0
    assert "pip could not install .[grading]" in result.stderr
    assert not (house / ".venv" / ".grading").exists()


@pytest.mark.parametrize("code", [0, 3])
def test_a_stage_says_its_name_and_how_long_it_took_and_ends_as_its_command(code):
    command = [ROOT / ".ci" / "stage", "types", "sh", "-c", f"echo found nothing; exit {code}"]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == code
    first, output, last = result.stdout.splitlines()
    assert (first, output) == ("== types", "found nothing")
    assert re.fullmatch(r"== types: \d+ min \d+ s", last)


SPARED = (
    *("work/02_convolution.ipynb", "work/journal.json", "work/__pycache__/mine.pyc", "work/build/mine.txt"),
    *("grades/scores.csv", "grader/gradebook.db", "grader/submitted/ann/__pycache__/hers.pyc"),
    *(f"grader/{folder}/ann/02_convolution/02_convolution.ipynb" for folder in ("submitted", "autograded", "feedback")),
    *("lessons/02_convolution.py", "notebooks/02_convolution/02_convolution.ipynb"),
)
REMOVED = (
    *(".venv/bin/python", ".venv-colab/bin/python", "build/lib/x.py", "unrolled.egg-info/PKG-INFO"),
    *(".pytest_cache/x", ".mypy_cache/x", ".ruff_cache/x", ".hypothesis/x", "artifacts/benchmarks/cpu.json"),
    *("lib/unrolled/__pycache__/x.pyc", "notebooks/02_convolution/.ipynb_checkpoints/x.ipynb"),
)


def test_clean_removes_what_was_made_and_spares_what_people_did(house):
    for file in (*SPARED, *REMOVED):
        script(house / file, "")
    assert make(house, "clean").returncode == 0
    assert [file for file in SPARED if not (house / file).exists()] == []
    assert [file for file in REMOVED if (house / file).exists()] == []


def test_requirements_name_what_the_course_needs_without_exact_pins():
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    needed = [line for line in lines if not line.startswith("#")]
    for package in ("jupyterlab", "numpy", "cupy-cuda12x", "matplotlib", "nbgrader", "ipywidgets", "-e ."):
        assert any(line.startswith(package) for line in needed), package
    assert not any("==" in line.partition(";")[0] for line in needed)
