"""The filter of system calls: what it refuses, what it feigns, what it lets through, and its numbers."""

import platform
import re
import subprocess
import sys
from pathlib import Path

import pytest

from unrolled_grader.box import seccomp

TRY = """
import ctypes, errno, os, sys
from unrolled_grader.box import seccomp
libc = ctypes.CDLL(None, use_errno=True)
libc.prctl(38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS
seccomp.install(gpu={gpu})
for name in {names}:
    ctypes.set_errno(0)
    done = libc.syscall(seccomp.number(name), -1, {second}, -1, -1, -1)
    print(name, "done" if done == 0 else errno.errorcode[ctypes.get_errno()])
"""
ALL = seccomp.NUMBERS.get(platform.machine(), {})
pytestmark = pytest.mark.skipif(not ALL, reason="no filter for this machine")


def tried(names: list[str], second: int = -1, gpu: bool = False) -> dict[str, str]:
    """What a process with the filter gets from these calls, whose arguments are all wrong but the second."""
    source = TRY.format(names=names, second=second, gpu=gpu)
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True, timeout=120)
    return dict(line.split() for line in done.stdout.splitlines())


def test_refused_calls_fail_and_idle_ones_do_nothing() -> None:
    refused = [name for names in (*seccomp.REFUSED.values(), seccomp.SENDING) for name in names if name in ALL]
    assert set(tried(refused).values()) == {"EPERM"}
    assert set(tried([name for name in seccomp.IDLE if name in ALL]).values()) == {"done"}


@pytest.mark.parametrize("name", seccomp.REFUSED_WITH)
def test_some_calls_are_refused_with_some_arguments_alone(name: str) -> None:
    for argument in seccomp.REFUSED_WITH[name]:
        assert tried([name], argument) == {name: "EPERM"}
        assert tried([name], argument + 1) == {name: "EBADF"}, "there is no file -1"


def test_with_a_gpu_messages_may_be_sent() -> None:
    assert tried(["sendmsg"], gpu=True)["sendmsg"] != "EPERM"
    assert tried(["keyctl"], gpu=True) == {"keyctl": "EPERM"}


@pytest.mark.skipif(platform.machine() != "x86_64", reason="another set of calls of x86-64")
def test_the_other_set_of_calls_is_refused() -> None:
    source = TRY.format(names=[], second=0, gpu=False)
    source += "print('x32', libc.syscall(0x40000000 + 39), ctypes.get_errno())"  # getpid
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.split() == ["x32", "-1", "1"]


HEADERS = {"x86_64": "/usr/include/x86_64-linux-gnu/asm/unistd_64.h", "aarch64": "/usr/include/asm-generic/unistd.h"}


@pytest.mark.parametrize("machine", HEADERS)
def test_the_numbers_are_those_of_the_kernels_headers(machine: str) -> None:
    header = Path(HEADERS[machine])
    if not header.exists():
        pytest.skip(f"there is no {header}")
    found = dict(re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", header.read_text()))
    known = {name: number for name, number in seccomp.NUMBERS[machine].items() if name in found}
    assert len(known) > 15
    assert known == {name: int(found[name]) for name in known}


def test_every_call_is_known_on_every_machine_or_is_another_name_there() -> None:
    named = {name for names in seccomp.REFUSED.values() for name in names}
    named |= {*seccomp.SENDING, *seccomp.IDLE, *seccomp.REFUSED_WITH}
    assert named == set(seccomp.NUMBERS["x86_64"])
    old = {"chmod", "chown", "lchown", "utime", "utimes", "futimesat"}  # AArch64 never had them
    assert named - old == set(seccomp.NUMBERS["aarch64"])


def test_a_machine_that_is_not_known_has_no_filter() -> None:
    assert seccomp.program("riscv64", gpu=False) == b""
