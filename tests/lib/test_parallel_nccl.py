"""What the NCCL engine says and does where there is no GPU."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest

from unrolled.parallel import NoEngineError, RankError, calls, launch
from unrolled.parallel.calls import place
from unrolled.parallel.nccl_start import _why, packed, run_nccl, variables, world
from unrolled.parallel.store import FOUND_BY

LAUNCHED = {"RANK": "1", "WORLD_SIZE": "4", "MASTER_ADDR": "node7", "MASTER_PORT": "29500"}


def fake_cupy(monkeypatch: pytest.MonkeyPatch, count: int, available: bool = True) -> None:
    """Let a CuPy be there that sees so many GPUs."""
    runtime = SimpleNamespace(getDeviceCount=lambda: count, CUDARuntimeError=RuntimeError)
    cuda = SimpleNamespace(runtime=runtime, nccl=SimpleNamespace(available=available))
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(cuda=cuda, __version__="fake"))
    monkeypatch.setitem(sys.modules, "cupy.cuda", cuda)


def test_what_is_not_there_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(NoEngineError, match=r'engine "nccl" needs CuPy .*pip install -e ".\[gpu\]"'):
        run_nccl(print, ranks=2)
    fake_cupy(monkeypatch, 2, available=False)
    with pytest.raises(NoEngineError, match="needs NCCL, which CuPy fake does not find"):
        run_nccl(print, ranks=2)
    fake_cupy(monkeypatch, 1)
    with pytest.raises(NoEngineError, match="needs a GPU a rank: 2 are asked for, 1 are there"):
        run_nccl(print, ranks=2)
    for name, value in (LAUNCHED | {"LOCAL_RANK": "1"}).items():
        monkeypatch.setenv(name, value)
    with pytest.raises(NoEngineError, match="rank 1 is to take GPU 1; this machine has 1"):
        world()


def test_a_launchers_variables_say_who_is_who():
    assert variables(LAUNCHED) == (1, 4, "node7", 29500)
    assert variables(LAUNCHED | {"TORCHELASTIC_USE_AGENT_STORE": "True"}) == (1, 4, "node7", 29501)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"RANK": "", "MASTER_PORT": ""}, "RANK, MASTER_PORT not set"),
        ({"RANK": "one"}, "whole numbers: .*'one'"),
        ({"RANK": "4"}, "RANK is 4 and WORLD_SIZE 4; expected a rank from 0"),
        ({"RANK": "-1"}, "RANK is -1"),
        ({"MASTER_PORT": "65535"}, "MASTER_PORT is 65535; expected"),
    ],
)
def test_wrong_variables_are_named(wrong, words):
    with pytest.raises(ValueError, match=words):
        variables(LAUNCHED | wrong)


@pytest.mark.parametrize(
    ("told", "gpus", "found"),
    [
        ({}, 2, False),
        ({"MASTER_ADDR": "node7"}, 2, False),
        (LAUNCHED, 2, True),
        (LAUNCHED, 0, True),  # an error: its ranks could not find each other otherwise
        (LAUNCHED | {"PMI_RANK": "1"}, 0, False),
        (LAUNCHED | {"PMIX_RANK": "1"}, 2, True),
        (LAUNCHED | {"RANK": "0", "WORLD_SIZE": "1"}, 0, False),
        (LAUNCHED | {"RANK": "0", "WORLD_SIZE": "1"}, None, False),
    ],
)
def test_a_script_takes_what_its_launcher_and_its_machine_have(told, gpus, found, monkeypatch):
    for name in (*FOUND_BY, *launch.MPI_RANKS):
        monkeypatch.delenv(name, raising=False)
    for name, value in told.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setitem(sys.modules, "cupy", None)
    if gpus is not None:
        fake_cupy(monkeypatch, gpus)
    assert launch._found_by_variables() == found


def test_a_program_in_a_folder_beside_the_package_is_not_taken_for_it():
    beside = str(Path(calls.__file__).parent) + "_mine/program.py"
    found: dict[str, Any] = {"place": place}
    exec(compile("\n\nwhere = place()", beside, "exec"), found)
    assert found["where"] == (beside, 3)


def test_what_cannot_go_to_another_process_is_named():
    with pytest.raises(TypeError, match="function and arguments cannot go to another process"):
        packed((print, (x for x in ()), {}))


def test_the_error_of_one_rank_explains_the_end_of_another():
    error = {"kind": "RankError", "text": "rank 1 raised KeyError"}
    silent, failed = mock.Mock(**{"poll.return_value": False}), mock.Mock(**{"recv.return_value": (False, error)})
    why = _why([0], [silent, failed], {}, None)  # type: ignore[arg-type, list-item]
    assert isinstance(why, RankError)
    assert str(why) == "rank 1 raised KeyError"
