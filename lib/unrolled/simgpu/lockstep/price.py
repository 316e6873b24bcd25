"""What a counted launch costs on a GPU: how many blocks a multiprocessor holds, and how long it all takes."""

from __future__ import annotations

from dataclasses import dataclass

from unrolled.simgpu.cost import BLOCK_SHARE
from unrolled.simgpu.kernel_report import SECTOR, LineReport
from unrolled.simgpu.profiles import GPUProfile

SHARED_LIMIT = 48 * 1024
"""Bytes of shared memory that a block may have, unless it asks for more in a way that CuPy's compiler does not have."""
THREADS_LIMIT = 1024
CLOCK = 1.5e9
"""Passes of shared memory a second on one multiprocessor: one a cycle (assumed: 1.2 to 1.98 GHz by model and load)."""


@dataclass(frozen=True)
class Multiprocessor:
    """What one multiprocessor holds at a time (CUDA C++ Programming Guide, table of compute capabilities)."""

    threads: int
    blocks: int
    shared: int
    reserved: int = 1024
    """Bytes of shared memory that the system takes from each block."""


_MULTIPROCESSORS = {
    "T4": Multiprocessor(1024, 16, 64 * 1024, 0),
    "A100": Multiprocessor(2048, 32, 164 * 1024),
    "H200": Multiprocessor(2048, 32, 228 * 1024),
}


def occupancy(threads: int, shared: int, profile: GPUProfile) -> tuple[float, str]:
    """Return (share of a multiprocessor's threads that can be there at a time, what limits it), registers left out."""
    whole = _MULTIPROCESSORS.get(profile.name, _MULTIPROCESSORS["T4"])
    warps = -(-threads // 32)
    fits = {"threads": whole.threads // 32 // warps, "blocks": whole.blocks}
    if shared:
        fits["shared memory"] = whole.shared // (shared + whole.reserved)
    limit = min(fits, key=lambda name: fits[name])
    return min(1.0, fits[limit] * warps * 32 / whole.threads), limit


def seconds(total: LineReport, blocks: int, profile: GPUProfile) -> tuple[float, float]:
    """Return (seconds of the launch, seconds if it had the whole GPU) for what was counted.

    The sectors take the place of the guess that `cost` makes of a kernel of the library. One that is written in part is
    read as well, since the rest of it has to be kept; one that the cache of a multiprocessor has costs nothing. Few
    blocks draw a part of the memory's bandwidth, and use a part of the multiprocessors.
    """
    partly = total.write_sectors - total.write_ideal
    sectors = total.read_sectors - total.read_again + total.write_sectors + partly
    traffic = sectors * SECTOR / profile.bandwidth
    busy = min(1.0, blocks / profile.multiprocessors)
    computing = total.operations / profile.float32 / busy
    sharing = total.shared_passes / (CLOCK * profile.multiprocessors) / busy
    moving = traffic / min(1.0, BLOCK_SHARE * blocks / profile.multiprocessors)
    work = max(moving, computing, sharing)
    return profile.shortest_kernel + work, work
