"""Who computes what: an array's rows shared out among ranks, as evenly as they go."""

from __future__ import annotations

from unrolled.ops.arguments import check_whole


def shard(count: int, rank: int, size: int) -> slice:
    """Return which of `count` rows rank `rank` of `size` has: count // size of them, the first count % size one more.

    Raises TypeError for what is no whole number, ValueError for a negative count and for a rank that is none.
    """
    check_whole("count", count, 0)
    check_whole("size", size)
    check_whole("rank", rank, 0)
    if rank >= size:
        raise ValueError(f"rank is {rank}; expected 0 to {size - 1}")
    share, more = divmod(count, size)
    start = rank * share + min(rank, more)
    return slice(start, start + share + (rank < more))
