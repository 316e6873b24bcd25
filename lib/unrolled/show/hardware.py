"""A computer with a GPU: where an array can lie, what it passes on its way, and how fast each way is."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.colors import to_hex

from unrolled.show.kernels import BANKS, WARP
from unrolled.show.picture import Picture
from unrolled.show.sheet import Box, Sheet
from unrolled.show.style import BLUE, GREEN, GREY, INK, ORANGE, PALE, SKY, SMALL, WIDTH, tint
from unrolled.show.words import amount, number, seconds

HOST: Box = (0.1, 0.62, 1.55, 1.95)  # inches: left, top, width, height
GPU: Box = (3.0, 0.62, 4.4, 1.95)
MEMORY: Box = (3.15, 1.0, 1.0, 1.42)
L2: Box = (4.95, 1.0, 0.62, 1.42)
UNITS: Box = (6.38, 1.0, 0.92, 1.42)
INSIDE: Box = (3.0, 2.82, 4.4, 1.3)  # below them, one of them enlarged
TABLE_ROW, TABLE = 0.25, 2.95
SQUARES = 8, 5  # little squares for the multiprocessors
BANK = 4  # bytes that each bank of shared memory gives in a pass
SHARED = 48  # KiB of it that a block may have without asking for more: the same on every NVIDIA GPU


def hardware(*profiles: Any, inside: bool = False) -> Picture:
    """Draw host, bus, GPU memory, L2 cache and multiprocessors; the ways between them with the first GPU's figures.

    profiles: of the simulated GPU (`simgpu.profile()`); a table below gives the figures of each GPU, and whether each
    was measured, comes from a data sheet or is assumed. inside: enlarge a multiprocessor, too, with its warps and the
    shared memory of a block.
    """
    first, found = profiles[0], [figures(profile) for profile in profiles]
    table = TABLE + (INSIDE[3] + 0.2) * inside
    sheet = Sheet(table + TABLE_ROW * len(found[0]) + 0.05)
    sheet.text((0.1, 0.17), "Where an array can lie, and the ways it takes", bold=True)
    sheet.text((0.1, 0.4), f"The figures on the ways: {first.name}.", size=SMALL)
    for box, name, colour in ((HOST, "host", SKY), (GPU, "device: the GPU", ORANGE)):
        _box(sheet, box, name, colour, 0.12)
    _box(sheet, (0.25, 1.0, 1.25, 0.5), "processor", BLUE, 0.3, "runs Python")
    _box(sheet, (0.25, 1.85, 1.25, 0.57), "memory", GREEN, 0.3, "NumPy arrays", 0.37)
    _box(sheet, MEMORY, "memory", GREEN, 0.3, f"{amount(first.memory, 'B')}\n\nGPU\narrays")
    _box(sheet, L2, "L2", GREEN, 0.55, amount(first.l2, "B"))
    words = f"{number(first.multiprocessors)} multiprocessors"
    sheet.text((UNITS[0] + UNITS[2], 0.84), words, size=SMALL, anchor="right")
    width, height = UNITS[2] / SQUARES[1], UNITS[3] / SQUARES[0]
    for row, column in np.ndindex(SQUARES):
        sheet.fill((UNITS[0] + column * width, UNITS[1] + row * height, 0.8 * width, 0.75 * height), ORANGE)
    bus, memory, cache = (amount(speed, "B/s") for speed in (first.link_bandwidth, first.bandwidth, first.l2_bandwidth))
    _way(sheet, HOST, 1.25, GPU, f"launch\n{seconds(first.host['kernel'])}", BLUE)
    _way(sheet, HOST, 2.1, MEMORY, f"bus\n{bus}", INK)
    _way(sheet, MEMORY, 1.75, L2, f"\n{memory}", INK)
    _way(sheet, L2, 1.75, UNITS, f"\n{cache}", INK)
    if inside:
        _inside(sheet)
    lefts = [3.0 + i * (WIDTH - 3.1) / len(found) for i in range(len(found))]
    for left, profile, one in zip(lefts, profiles, found, strict=True):
        sheet.text((left, table - 0.12), profile.name, size=SMALL, bold=True)
        for i, (value, kind) in enumerate(one.values()):
            y = table + TABLE_ROW * (i + 0.5)
            sheet.text((left, y), value, size=SMALL)
            sheet.text((left + 1.0, y), kind, INK if kind == "measured" else GREY, SMALL)
    for i, name in enumerate(found[0]):
        y = table + TABLE_ROW * (i + 0.5)
        sheet.line((0.1, y - TABLE_ROW / 2), (WIDTH - 0.1, y - TABLE_ROW / 2), colour=PALE)
        sheet.text((0.1, y), name, size=SMALL)
    return Picture(sheet.figure(), _alt(profiles, found, inside))


def _inside(sheet: Sheet) -> None:
    """One multiprocessor, enlarged: warps of 32 threads, and the shared memory of a block in its 32 banks."""
    left, top, width, _ = INSIDE
    low = UNITS[1] + 0.97 * UNITS[3]
    for start, end in ((UNITS[0] + 0.8 * UNITS[2], left), (UNITS[0] + 0.97 * UNITS[2], left + width)):
        sheet.line((start, low), (end, top), style="--")
    _box(sheet, INSIDE, "one multiprocessor", ORANGE, 0.12)
    warps, shared = (left + 0.1, top + 0.32, 2.0, 0.85), (left + 3.02, top + 0.32, 1.28, 0.85)
    _box(sheet, warps, f"warps of {WARP} threads", ORANGE, 0.45)
    for row, lane in np.ndindex(4, WARP):
        sheet.fill((warps[0] + 0.1 + lane * 0.057, warps[1] + 0.29 + row * 0.135, 0.042, 0.09), INK)
    _box(sheet, shared, "shared memory", GREEN, 0.45, f"{BANKS} banks\n{SHARED} KiB a block")
    _way(sheet, warps, top + 0.75, shared, f"\n{BANKS * BANK} B a pass", INK)


def figures(profile: Any) -> dict[str, tuple[str, str]]:
    """Return what is told of a GPU: the name of each figure -> (its value with a unit, where it is from)."""
    quantities = {
        "a launch, on the host": (seconds(profile.host["kernel"]), "host.kernel"),
        "the bus, from page-locked memory": (amount(profile.link_bandwidth, "B/s"), "link_bandwidth"),
        "the bus, from pageable memory": (amount(profile.pageable_bandwidth, "B/s"), "pageable_bandwidth"),
        "latency of a transfer": (seconds(profile.link_latency), "link_latency"),
        "the GPU's memory": (amount(profile.bandwidth, "B/s"), "bandwidth"),
        "the L2 cache, size": (amount(profile.l2, "B"), "l2"),
        "the L2 cache, places one by one": (amount(profile.l2_bandwidth, "B/s"), "l2_bandwidth"),
        "the multiprocessors, float32": (amount(profile.float32, "flop/s"), "float32"),
    }
    found = {}
    for name, (value, key) in quantities.items():
        kinds = (kind for kind in ("measured", "assumed") if profile.sources[key].startswith(kind))
        found[name] = value, next(kinds, "data sheet")
    return found


def _box(sheet: Sheet, box: Box, name: str, colour: str, strength: float, words: str = "", down: float = 0.36) -> None:
    """A tinted box with its name, and words in it that start `down` inches below its upper side."""
    sheet.fill(box, to_hex(tint(colour, strength)))
    sheet.text((box[0] + 0.1, box[1] + 0.15), name, size=SMALL, bold=True)
    sheet.text((box[0] + 0.1, box[1] + down), words, size=SMALL)


def _way(sheet: Sheet, left: Box, y: float, right: Box, words: str, colour: str) -> None:
    """A line from box to box, with the name of the way above it and its figure below."""
    start, end = left[0] + left[2], right[0]
    sheet.line((start, y), (end, y), colour=colour, width=2.2)
    for above, line in zip((-0.13, 0.15), words.split("\n"), strict=True):
        sheet.text(((start + min(end, 3.0 if start < 3 else end)) / 2, y + above), line, colour, SMALL, "middle")


def _alt(profiles: Any, found: list[dict[str, tuple[str, str]]], inside: bool) -> str:
    lists = (
        f"{profile.name}, {number(profile.multiprocessors)} multiprocessors, {amount(profile.memory, 'B')}: "
        + "; ".join(f"{name} {value} ({kind})" for name, (value, kind) in one.items())
        for profile, one in zip(profiles, found, strict=True)
    )
    enlarged = (
        f"In a multiprocessor, warps of {WARP} threads share a memory of {BANKS} banks, which give {BANKS * BANK} B a "
        f"pass; a block may have {SHARED} KiB of it. "
    )
    return (
        "A host with a processor and its memory, and a GPU with a memory of its own, an L2 cache and multiprocessors. "
        "The processor launches kernels; arrays cross the bus from memory to memory; what the multiprocessors compute "
        f"on comes from the GPU's memory through the L2 cache. {enlarged * inside}{'. '.join(lists)}."
    )
