"""Which system calls student code may make: a filter for what no namespace and no read-only mount can stop.

The kernel's keys have no namespace. A file that a process was started from, or was handed, belongs to a mount outside
of the box: whoever owns it may change its mode, times and attributes from inside. A lease on a file makes others wait
who open it. A file that is sent along a socket is closed by whoever receives it, which takes as long as its sender
likes. And some calls, which no notebook needs, reach parts of the kernel through which code has broken out of a box.

The filter is a program of the kernel's small machine, classic BPF, which looks at the number of a call and its second
argument: see seccomp(2) and Documentation/userspace-api/seccomp_filter.rst of Linux. It stays with every process that
comes from one that has it. Numbers are those of asm/unistd_64.h and asm-generic/unistd.h, for x86-64 and AArch64; for
other machines there is no filter.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
from collections.abc import Iterator

REFUSED = {
    "keys": ("add_key", "request_key", "keyctl"),
    "attributes": (
        *("setxattr", "lsetxattr", "fsetxattr", "setxattrat", "file_setattr"),
        *("removexattr", "lremovexattr", "fremovexattr", "removexattrat"),
    ),
    "owners": ("chown", "fchown", "lchown", "fchownat"),
    # A queue of calls that no filter sees.
    "another way to call": ("io_uring_setup", "io_uring_enter", "io_uring_register"),
    # Programs and counters in the kernel itself; the latter tell what happens on the machine.
    "the kernel's own machines": ("bpf", "perf_event_open"),
    # Holds the kernel up in the middle of its work, for as long as one likes: most exploits of a race begin with it.
    "page faults": ("userfaultfd",),
    # Their memory and their open files. The namespace keeps processes outside away; in the box nobody needs this.
    "other processes": ("ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "kcmp", "pidfd_getfd"),
    # By number, past all mounts; and watching those of others, which needs no right any more.
    "files": ("open_by_handle_at", "name_to_handle_at", "fanotify_init"),
    # Its disks and its log: partly free for all.
    "the machine": ("quotactl", "quotactl_fd", "syslog"),
}
SENDING = ("sendmsg", "sendmmsg")
"""Refused, too, unless a GPU is in reach: whether NVIDIA's driver sends files to itself is its own affair."""
IDLE = ("chmod", "fchmod", "fchmodat", "fchmodat2", "utime", "utimes", "futimesat", "utimensat")
"""Succeed and change nothing, so that shutil.copy works: modes and times of files in a box matter to nobody."""
REFUSED_WITH = {
    "fcntl": (1024,),  # F_SETLEASE
    "ioctl": (0x40086602, 0x401C5820, 0x40806685),  # FS_IOC_SETFLAGS, FS_IOC_FSSETXATTR, FS_IOC_ENABLE_VERITY
}
"""Calls that are refused with these second arguments."""

_CALLS = """
add_key 248 217; bpf 321 280; chmod 90 -; chown 92 -; fanotify_init 300 262; fchmod 91 52; fchmodat 268 53;
fchmodat2 452 452; fchown 93 55; fchownat 260 54; fcntl 72 25; file_setattr 469 469; fremovexattr 199 16;
fsetxattr 190 7; futimesat 261 -; io_uring_enter 426 426; io_uring_register 427 427; io_uring_setup 425 425;
ioctl 16 29; kcmp 312 272; keyctl 250 219; lchown 94 -; lremovexattr 198 15; lsetxattr 189 6;
name_to_handle_at 303 264; open_by_handle_at 304 265; perf_event_open 298 241; pidfd_getfd 438 438;
process_madvise 440 440; process_vm_readv 310 270; process_vm_writev 311 271; ptrace 101 117; quotactl 179 60;
quotactl_fd 443 443; removexattr 197 14; removexattrat 466 466; request_key 249 218; sendmmsg 307 269; sendmsg 46 211;
setxattr 188 5; setxattrat 463 463; syslog 103 116; userfaultfd 323 282; utime 132 -; utimensat 280 88; utimes 235 -
"""
"""Each call with its numbers on x86-64 and AArch64, a dash where there is none."""
_ROWS = [row.split() for row in _CALLS.split(";")]
NUMBERS = {
    machine: {row[0]: int(row[column]) for row in _ROWS if row[column] != "-"}
    for column, machine in enumerate(("x86_64", "aarch64"), 1)
}
ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
"""AUDIT_ARCH_*: a process can also call with the numbers of another one, which is refused."""
X32 = 0x40000000  # set in the numbers of a third set of calls on x86-64

_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06  # BPF_LD | BPF_W | BPF_ABS and so on
_NUMBER, _ARCHITECTURE, _SECOND = 0, 4, 24  # bytes into struct seccomp_data; of an argument, the lower half
_ALLOW, _ERROR = 0x7FFF0000, 0x00050000  # SECCOMP_RET_*; the latter with the error's number
PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 22, 2

Instruction = tuple[int, int, int, int]


def number(name: str) -> int | None:
    """Return a system call's number on this machine; None where it is not known."""
    return NUMBERS.get(platform.machine(), {}).get(name)


def program(machine: str, *, gpu: bool) -> bytes:
    """Return the filter, an array of struct sock_filter, for the kernel and bubblewrap; empty for unknown machines."""
    if machine not in NUMBERS:
        return b""
    return b"".join(struct.pack("HBBI", *instruction) for instruction in _instructions(machine, gpu))


def install(*, gpu: bool) -> None:
    """Filter the calls of this process and of all that come from it, for good. Raises OSError if the kernel refuses.

    The process must have given up the right to gain rights (PR_SET_NO_NEW_PRIVS).
    """
    code = program(platform.machine(), gpu=gpu)
    if not code:
        return
    room = ctypes.create_string_buffer(code, len(code))
    header = struct.pack("HP", len(code) // 8, ctypes.addressof(room))  # struct sock_fprog
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, header, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), f"seccomp: {os.strerror(ctypes.get_errno())}")


def _instructions(machine: str, gpu: bool) -> Iterator[Instruction]:
    """Each test jumps over so many instructions if it holds, and over so many if it does not."""
    numbers = NUMBERS[machine]
    refuse = (_RETURN, 0, 0, _ERROR | errno.EPERM)
    yield _LOAD, 0, 0, _ARCHITECTURE
    yield _EQUAL, 1, 0, ARCHITECTURES[machine]
    yield refuse
    yield _LOAD, 0, 0, _NUMBER
    if machine == "x86_64":
        yield _AT_LEAST, 0, 1, X32
        yield refuse
    answers = {name: refuse for names in REFUSED.values() for name in names}
    answers |= {name: refuse for name in SENDING if not gpu}
    answers |= dict.fromkeys(IDLE, (_RETURN, 0, 0, _ERROR))  # error 0: done
    for name, answer in answers.items():
        if name in numbers:
            yield _EQUAL, 0, 1, numbers[name]
            yield answer
    for name, arguments in REFUSED_WITH.items():
        yield _EQUAL, 0, 2 + 2 * len(arguments), numbers[name]
        yield _LOAD, 0, 0, _SECOND
        for argument in arguments:
            yield _EQUAL, 0, 1, argument
            yield refuse
        yield _RETURN, 0, 0, _ALLOW
    yield _RETURN, 0, 0, _ALLOW
