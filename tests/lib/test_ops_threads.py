"""The threads of ops: who gets which blocks, what a limit of one means, forks, exceptions; and that no bit changes."""

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from operator import length_hint

import numpy as np
import pytest
import threadpoolctl

from unrolled import ops
from unrolled.ops import threads
from unrolled.timing.blocks import blas_threads

CONTROLLED = bool(threads._blas())
needs_control = pytest.mark.skipif(not CONTROLLED, reason="threadpoolctl controls no BLAS here")
PATIENCE = 60  # seconds until a test that would hang fails instead


def blas_limit() -> int:
    return min(library.get_num_threads() for library in threads._blas())


def meet(number: int) -> Callable[[Iterator[int]], None]:
    """Return work of which each item waits until `number` threads have one."""
    barrier = threading.Barrier(number)

    def work(items: Iterator[int]) -> None:
        for _ in items:
            barrier.wait(PATIENCE)

    return work


def idents(items: int) -> set[int]:
    """The threads that work on so many items."""
    found: set[int] = set()
    threads.share(lambda rest: found.update(threading.get_ident() for _ in rest), range(items))
    return found


def random(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


def everything(kernel: int, stride: int, padding: int) -> list[np.ndarray]:
    """All that threads have a part in, on 43 images: the last block is smaller than the others."""
    x, weight, bias = random(43, 3, 40, 41), random(5, 3, kernel, kernel), random(5)
    y = ops.conv2d(x, weight, bias, stride, padding)
    gradients = ops.conv2d_backward(y, x, weight, stride, padding)
    pooled = ops.max_pool2d_with_indices(x, kernel, stride, padding)
    wide = random(43, 4, 120, 120)
    q = random(3, 2, 700, 8)
    attended = ops.attention_with_logsumexp(q, q, q, causal=True)
    gradients += ops.attention_backward(q, q, q, q, *attended, causal=True)
    return [y, *attended, *gradients, *pooled, ops.relu(wide), ops.relu_backward(wide, wide[::-1])]


@needs_control
@pytest.mark.parametrize(("kernel", "stride", "padding"), [(3, 1, 1), (5, 2, 0)])
def test_the_number_of_threads_changes_no_bit(kernel: int, stride: int, padding: int) -> None:
    found = []
    for number in (1, 2, 3):
        with threadpoolctl.threadpool_limits(number):
            found.append([array.tobytes() for array in everything(kernel, stride, padding)])
    assert found[0] == found[1] == found[2]


@needs_control
def test_threads_are_as_many_as_blas_may_use_and_each_has_one_for_its_products() -> None:
    for number in (2, 3):
        with threadpoolctl.threadpool_limits(number):
            threads.share(meet(number), range(number * 2))
            assert blas_limit() == number
    seen = []
    with threadpoolctl.threadpool_limits(2):
        threads.share(lambda rest: seen.extend(blas_limit() for _ in rest), range(8))
    assert seen == [1] * 8


@needs_control
def test_alone_blas_has_one_thread_until_the_end_of_the_block() -> None:
    with threadpoolctl.threadpool_limits(2):
        with threads.alone(), threads.alone():
            assert (blas_limit(), len(idents(9))) == (1, 1)
        assert blas_limit() == 2
        threads.share(meet(2), range(2))


@needs_control
def test_one_thread_while_timing_is_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    def call(*_: object) -> None:
        pytest.fail("a thread was asked for")

    monkeypatch.setattr(threads._Team, "call", call)
    with blas_threads(1) as held:
        everything(3, 1, 1)
        assert idents(8) == {threading.get_ident()}
        assert held() == "1 thread"


@needs_control
@pytest.mark.parametrize("where", ["here", "beside"])
def test_an_exception_is_raised_once_and_the_threads_go_on(where: str) -> None:
    here, barrier, done = threading.get_ident(), threading.Barrier(2), []

    def work(items: Iterator[int]) -> None:
        for item in items:
            barrier.wait(PATIENCE)
            if (threading.get_ident() == here) == (where == "here"):
                raise ArithmeticError(f"item {where}")
            end = time.monotonic() + PATIENCE
            while length_hint(items) and time.monotonic() < end:  # until the other one has failed
                time.sleep(0.001)
            done.append(item)

    with threadpoolctl.threadpool_limits(2):
        with pytest.raises(ArithmeticError, match=f"item {where}"):
            threads.share(work, range(100))
        assert len(done) == 1
        assert blas_limit() == 2
        threads.share(meet(2), range(2))


FORKED = """
import os, sys, threading
import threadpoolctl
from unrolled.ops import threads

def meet(items):
    for _ in items:
        barrier.wait(60)

def child_is_fine():
    global barrier
    pid = os.fork()
    if pid:
        return os.waitpid(pid, 0)[1] == 0
    barrier = threading.Barrier(2)
    with threadpoolctl.threadpool_limits(2):
        threads.share(meet, range(2))
    os._exit(0)

threadpoolctl.threadpool_limits(2)
barrier = threading.Barrier(2)
threads.share(meet, range(2))
fine = [child_is_fine()]
here = threading.get_ident()
threads.share(lambda items: [fine.append(child_is_fine()) for _ in items if threading.get_ident() == here], range(2))
barrier = threading.Barrier(2)
threads.share(meet, range(2))
print(set(fine))
"""


@needs_control
@pytest.mark.skipif(not hasattr(threads.os, "fork"), reason="no fork on this system")
def test_a_forked_process_makes_threads_of_its_own() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKED], capture_output=True, text=True, timeout=PATIENCE * 2, check=True
    )
    assert done.stdout.strip() == "{True}"
