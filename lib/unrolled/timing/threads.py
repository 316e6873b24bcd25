"""How many threads the BLAS library may use while something is timed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from unrolled.timing.verdict import UNCONTROLLED


@contextmanager
def blas_threads(threads: int | None) -> Iterator[Callable[[], str]]:
    """Hold BLAS (and OpenMP) to `threads` threads inside the block; yield a function that says in words what holds.

    None leaves them as they are. "threads uncontrolled": threadpoolctl knows no BLAS, as with Apple's Accelerate, or
    one was loaded inside the block and runs more. Raises ValueError for fewer than one.
    """
    if threads is None:
        yield lambda: "threads left alone"
        return
    if threads < 1:
        raise ValueError(f"threads is {threads}; expected at least 1, or None to leave them alone")
    import threadpoolctl

    def held() -> str:
        pools = [pool["num_threads"] for pool in threadpoolctl.threadpool_info() if pool["user_api"] == "blas"]
        if not pools or max(pools) > threads:
            return UNCONTROLLED
        return f"{threads} thread{'s' * (threads > 1)}"

    with threadpoolctl.threadpool_limits(threads):
        yield held
