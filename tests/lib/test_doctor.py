"""`unrolled doctor`: it tells what is there, and why something is not."""

import json
import os
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest

import unrolled
from unrolled import cli, doctor


@pytest.fixture(scope="module")
def facts():
    return doctor.examine()


def test_the_facts_are_those_of_this_process(facts):
    assert json.loads(json.dumps(facts)) == facts
    assert facts["unrolled"] == doctor.release()
    assert facts["python"]["executable"] == sys.executable
    assert 1 <= facts["cores"]["usable"] <= facts["cores"]["machine"]
    versions = {row["name"]: row["version"] for row in facts["packages"]}
    assert versions["numpy"] == np.__version__
    assert {"matplotlib", "ipywidgets", "threadpoolctl"} <= versions.keys()
    assert [entry["name"] for entry in facts["data"]][:1] == ["digits"]


@pytest.mark.skipif(not shutil.which("git"), reason="needs git")
def test_the_release_names_its_commit_where_that_is_known(tmp_path, monkeypatch, capsys):
    library = tmp_path / "course" / "lib" / "unrolled"
    library.mkdir(parents=True)
    (file := library / "__init__.py").touch()
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org"]

    def committed(root):
        for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "one"]):
            subprocess.run([*git, *words], cwd=root, check=True)

    monkeypatch.setattr(doctor.unrolled, "__file__", str(file))
    committed(tmp_path)
    assert doctor.release() == unrolled.__version__, "the repository around it is somebody else's"
    committed(tmp_path / "course")
    assert re.fullmatch(r".+ \([0-9a-f]{12}\)", doctor.release())
    file.write_text("x = 1", encoding="utf-8")
    assert doctor.release().endswith("-dirty)")
    (library / "commit.txt").write_text("0a1b2c", encoding="utf-8")
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out == f"unrolled {unrolled.__version__} (0a1b2c)\n"


def test_the_table_says_it_all_to_a_reader(facts):
    bare = {"device": {"gpu": None, "why": "no driver"}, "blas": [], "problems": ["numpy: missing"]}
    text = doctor.table({**facts, **bare})
    for words in ("Python", "its threads cannot be controlled", "none: no driver", "sandbox", "digits"):
        assert words in text
    assert "problem: numpy: missing" in text
    assert "GPU          H200" in doctor.table({**facts, "device": {"gpu": "H200", "why": None}})


@pytest.mark.parametrize(
    ("version", "fits", "extra", "problem"),
    [
        ("2.1", True, None, ""),
        ("1.9", False, None, "numpy: 1.9, but >=2 is wanted"),
        (None, True, None, "numpy: missing"),
        (None, True, "lab", ""),
        ("1.9", False, "lab", "numpy: 1.9, but >=2 is wanted"),
    ],
)
def test_a_missing_core_package_and_a_wrong_version_are_problems(monkeypatch, version, fits, extra, problem):
    row = {"name": "numpy", "wanted": ">=2", "version": version, "fits": fits, "extra": extra}
    monkeypatch.setattr(doctor, "packages", lambda: [row])
    assert doctor.examine()["problems"] == ([problem] if problem else [])


@pytest.mark.skipif(os.name == "nt", reason="the stand-in for bubblewrap is a shell script")
@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("exit 0", None),
        ("echo 'bwrap: No permissions to create new namespace' >&2; exit 1", "forbids user namespaces"),
        ("echo 'bwrap: setting up uid map: Permission denied' >&2; exit 1", "forbids user namespaces"),
        ("echo 'bwrap: broken' >&2; exit 1", "bwrap: broken"),
        ("exit 7", "exit code 7"),
    ],
)
def test_a_sandbox_is_really_run_and_says_why_it_does_not_work(tmp_path, monkeypatch, script, why):
    file = tmp_path / "bwrap"
    file.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/asked\n{script}\n', encoding="utf-8")
    file.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(sys, "platform", "linux")
    found = doctor.sandbox()
    assert (tmp_path / "asked").read_text(encoding="utf-8") == "--unshare-all --ro-bind / / true\n"
    assert found["works"] == (why is None)
    assert found["why"] is None if why is None else why in found["why"]


@pytest.mark.parametrize(("platform", "words"), [("linux", "apt-get install bubblewrap"), ("darwin", "Linux")])
def test_without_bubblewrap_the_way_to_one_is_named(tmp_path, monkeypatch, platform, words):
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert words in doctor.sandbox()["why"]


def test_the_command_prints_a_table_or_json_and_fails_if_there_are_problems(facts, monkeypatch, capsys):
    monkeypatch.setattr(doctor, "examine", lambda: facts)
    assert cli.main(["doctor"]) == bool(facts["problems"])
    assert capsys.readouterr().out.startswith("unrolled ")
    monkeypatch.setattr(doctor, "examine", lambda: {**facts, "problems": ["numpy: missing"]})
    assert cli.main(["doctor", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["problems"] == ["numpy: missing"]
