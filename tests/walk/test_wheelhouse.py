"""The course's wheel holds what the library needs; a wheelhouse installs with the network off, or says what lacks."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import unrolled
from unrolled import doctor
from unrolled.cli import CommandError
from unrolled_grader.authoring import sample, wheelhouse
from unrolled_grader.authoring.wheelhouse import SYSTEMS, Target

ROOT = Path(__file__).resolve().parents[2]
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
LINUX, MAC_ARM, MAC_INTEL, WINDOWS = SYSTEMS
CHECK = """\
import sys
from pathlib import Path
import unrolled
from unrolled import checks, ops, simgpu
assert Path(unrolled.__file__).is_relative_to(sys.argv[1]), unrolled.__file__
spec = checks.lessons()["02_convolution"]["im2col"]
print(checks.run("im2col", spec, ops.im2col).findings[0].lines)

from unittest import mock
from unrolled.cli import checkout, lab, main
from unrolled_grader.authoring import sample
lab.os.execv = mock.Mock(side_effect=KeyboardInterrupt)  # JupyterLab ends at Ctrl-C
assert main(["lab", "00"]) == 130
assert sorted(file.stem for file in Path("work").iterdir()) == list(checks.lessons())
assert main(["submit", "00", "--student", "ada", "--no-run"]) == 0
assert (main(["upgrade", "all"]), main(["progress"]), main(["grade"])) == (0, 0, 1)
course = sample.practice(checkout.course(), Path("course"))
sample.hand_in(course, [sample.PRACTICE], Path("submitted"))
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The course's wheel, built by this environment's setuptools."""
    return wheelhouse.build_wheel(ROOT, tmp_path_factory.mktemp("wheel"), isolated=False)


def test_the_wheel_holds_all_of_the_library_and_the_same_tree_gives_the_same_bytes(wheel: Path, tmp_path: Path) -> None:
    assert wheel.name == f"unrolled-{unrolled.__version__}-py3-none-any.whl"
    library = ROOT / "lib"
    there = {f.relative_to(library).as_posix() for f in library.rglob("*") if f.is_file()}
    ours = {name for name in there if "__pycache__" not in name and name.startswith("unrolled/")}
    held = set(zipfile.ZipFile(wheel).namelist())
    assert ours <= held, ours - held
    assert not any("__pycache__" in name for name in held)
    brought = {name.removeprefix("unrolled/course/") for name in held if "/course/" in name}
    assert brought >= {f.relative_to(ROOT).as_posix() for f in ROOT.glob("notebooks/*/*.ipynb")}
    for name in brought:
        assert zipfile.ZipFile(wheel).read(f"unrolled/course/{name}") == (ROOT / name).read_bytes()
        assert not name.startswith(("solutions", "lessons"))
    assert [name for name in brought if name.endswith(".py") and "lesson" in name] == [
        "grader/sample_class/lesson00.py"
    ]
    if commit := doctor.commit(ROOT):
        assert zipfile.ZipFile(wheel).read("unrolled/commit.txt").decode() == commit
    about = f"unrolled-{unrolled.__version__}.dist-info"
    assert {name.split("/")[0] for name in held} == {"unrolled", "unrolled_grader", about}


def test_the_wheel_works_from_a_folder_of_its_own(wheel: Path, tmp_path: Path) -> None:
    options = ["--quiet", "--no-deps", "--no-index", "--target", str(tmp_path / "at")]
    subprocess.run([sys.executable, "-m", "pip", "install", *options, str(wheel)], check=True)
    env = {**os.environ, "PYTHONPATH": str(tmp_path / "at")}
    command = [sys.executable, "-c", CHECK, str(tmp_path)]
    (here := tmp_path / "a folder").mkdir()
    done = subprocess.run(command, env=env, cwd=here, capture_output=True, text=True)
    assert "which this exercise does not allow" in done.stdout, done.stderr
    assert done.returncode == 0, done.stderr
    assert re.search(r"^unrolled grade: this needs the course's folder.*$", done.stderr, re.MULTILINE)
    assert (here / "work" / "00_start_here.ada.zip").is_file()
    handed_in = {file.parts[-3]: file.read_text(encoding="utf-8") for file in here.glob("submitted/*/*/*.ipynb")}
    assert handed_in.keys() == set(sample.STUDENTS)
    solved = {one for one, text in handed_in.items() if "return images.mean(axis=(1, 2, 3))" in text}
    assert solved == {"perfect", *sample.SPOILED}


def a_wheel(folder: Path, name: str, tag: str = "py3-none-any", *needs: str, version: str = "1.0") -> Path:
    """A wheel with one module and these requirements."""
    folder.mkdir(exist_ok=True)
    made, info = folder / f"{name}-{version}-{tag}.whl", f"{name}-{version}.dist-info"
    about = [f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}", *(f"Requires-Dist: {need}" for need in needs)]
    if name == "unrolled":
        about.append("Provides-Extra: lab")
    files = {
        f"{name}.py": "x = 1\n",
        f"{info}/METADATA": "\n".join(about) + "\n",
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: {tag}\n",
    }
    with zipfile.ZipFile(made, "w") as archive:
        for file, text in files.items():
            archive.writestr(file, text)
        archive.writestr(f"{info}/RECORD", "".join(f"{file},,\n" for file in [*files, f"{info}/RECORD"]))
    return made


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in place of the index: what every system needs, and what one needs alone."""
    folder = tmp_path / "index"
    a_wheel(folder, "common", "py3-none-any", 'onlywin; sys_platform == "win32"', 'soon; python_version >= "3.99"')
    python = f"cp{PYTHON.replace('.', '')}"
    for tag in ("manylinux_2_17_x86_64", "macosx_11_0_arm64", "win_amd64"):  # no Mac with Intel
        a_wheel(folder, "fast", f"{python}-{python}-{tag}", version="2.0")
    a_wheel(folder, "fast", f"{python}-{python}-manylinux_2_99_x86_64", version="3.0")
    a_wheel(folder, "onlywin", "py3-none-win_amd64")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    return folder


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    """In place of the course's own wheel: one that needs next to nothing."""
    return a_wheel(tmp_path / "own", "unrolled", "py3-none-any", "common", 'fast>=2; extra == "lab"', version="1.0.0")


def requirements(house: Path, target: Target) -> list[str]:
    return [line.split(" ")[0] for line in (house / target.requirements).read_text(encoding="utf-8").splitlines()]


def test_each_system_gets_its_own_and_installs_with_the_network_off(index: Path, tiny: Path, tmp_path: Path) -> None:
    house = tmp_path / "house"
    targets = [Target(system, PYTHON) for system in (LINUX, WINDOWS)]
    assert wheelhouse.collect(house, tiny, targets) == {}
    assert requirements(house, targets[0]) == ["common==1.0", "fast==2.0", "unrolled==1.0.0"]
    assert requirements(house, targets[1]) == ["common==1.0", "fast==2.0", "onlywin==1.0", "unrolled==1.0.0"]
    for line in (house / "SHA256SUMS").read_text(encoding="utf-8").splitlines():
        digest, name = line.split("  ")
        assert hashlib.sha256((house / name).read_bytes()).hexdigest() == digest
    assert "-r requirements\\windows-x86_64-py" in (house / "README.txt").read_text(encoding="utf-8")
    if sys.platform == "linux":
        assert installed(house, targets[0], tmp_path / "at").returncode == 0
        assert (tmp_path / "at" / "fast.py").is_file()
        spoilt = house / "wheels" / "common-1.0-py3-none-any.whl"
        spoilt.write_bytes(spoilt.read_bytes() + b" ")
        assert "DO NOT MATCH THE HASHES" in installed(house, targets[0], tmp_path / "b").stderr


def installed(house: Path, target: Target, into: Path) -> subprocess.CompletedProcess[str]:
    """The README's line, into a folder, where no network can be reached."""
    off = ["bwrap", "--dev-bind", "/", "/", "--unshare-net"]
    held = shutil.which("bwrap") and subprocess.run([*off, "true"], capture_output=True).returncode == 0
    options = ["--no-index", "--find-links", "wheels", "--require-hashes"]
    options += ["-r", target.requirements, "--target", str(into)]
    env = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    env |= {"https_proxy": "http://127.0.0.1:9", "http_proxy": "http://127.0.0.1:9", "PIP_CONFIG_FILE": os.devnull}
    command = [*(off if held else []), sys.executable, "-m", "pip", "install", "--quiet", *options]
    return subprocess.run(command, cwd=house, env=env, capture_output=True, text=True)


def test_a_system_without_a_wheel_is_named_and_the_others_are_served(index: Path, tiny: Path, tmp_path: Path) -> None:
    house = tmp_path / "house"
    targets = [Target(system, PYTHON) for system in (MAC_ARM, MAC_INTEL)]
    lacking = wheelhouse.collect(house, tiny, targets)
    assert list(lacking) == [targets[1]]
    assert "fast" in lacking[targets[1]]
    text = (house / "README.txt").read_text(encoding="utf-8")
    assert f"NOT SERVED: {targets[1]}" in text
    assert targets[0].requirements in text
    assert not (house / targets[1].requirements).exists()


def test_a_folder_that_is_no_wheelhouse_is_left_alone(tiny: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis.txt").write_text("x", encoding="utf-8")
    with pytest.raises(CommandError, match="holds something that is no wheelhouse"):
        wheelhouse.collect(mine, tiny, [])
    assert [file.name for file in mine.iterdir()] == ["thesis.txt"]
    (mine / "work").mkdir()
    (mine / wheelhouse.SUMS).touch()
    with pytest.raises(CommandError, match="is somebody's work"):
        wheelhouse.collect(mine, tiny, [])


def test_data_that_is_at_hand_comes_along_and_none_else(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from unrolled.data import fetching

    given = tmp_path / "given" / "mnist"
    given.mkdir(parents=True)
    for name in fetching.MNIST.files:
        (given / name).write_text(name, encoding="utf-8")
    monkeypatch.setenv("UNROLLED_DATA", str(given.parent))
    wheelhouse.collect(tmp_path / "house", tiny, [], ["mnist"])
    assert sorted(file.name for file in (tmp_path / "house/data/mnist").iterdir()) == sorted(fetching.MNIST.files)
    assert "UNROLLED_DATA" in (tmp_path / "house" / "README.txt").read_text(encoding="utf-8")
    with pytest.raises(CommandError, match="there is no data set 'imagenet' to bring along; there are mnist"):
        wheelhouse.collect(tmp_path / "other", tiny, [], ["imagenet"])
    assert not (tmp_path / "other").exists()
