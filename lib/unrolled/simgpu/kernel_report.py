"""What the simulated GPU counted while a kernel of the program's own ran: plain figures, in all and by line."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any

SECTOR = 32
"""Bytes that memory gives or takes at once."""


@dataclass
class LineReport:
    """What one line of a kernel did, over the whole launch. A request is one instruction of one warp."""

    line: int = 0
    code: str = ""
    reads: int = 0
    """Requests to global memory that read."""
    read_sectors: int = 0
    read_again: int = 0
    """Of these sectors, those of which the same threads read just before: the L1 cache has them."""
    read_ideal: int = 0
    """Sectors that would hold the values that were read, each counted once a request, if they lay side by side."""
    read_bytes: int = 0
    """Bytes of these values."""
    writes: int = 0
    """Requests to global memory that write; an atomic operation is a read and a write."""
    write_sectors: int = 0
    write_ideal: int = 0
    write_bytes: int = 0
    shared: int = 0
    """Passes that shared memory would take without bank conflicts."""
    shared_passes: int = 0
    """Passes that it takes: values of different rows of one bank come one after the other."""
    branches: int = 0
    """Conditions that a warp met, at an `if` or a loop."""
    divergent: int = 0
    """Those at which a warp's threads went both ways."""
    operations: int = 0
    """Arithmetic of all threads; a division counts 8, an exponential 16."""

    @property
    def read_excess(self) -> int:
        """Sectors that were read and would not have to be."""
        return self.read_sectors - self.read_ideal

    @property
    def write_excess(self) -> int:
        return self.write_sectors - self.write_ideal

    @property
    def bank_conflicts(self) -> int:
        return self.shared_passes - self.shared


_COUNTS = [field.name for field in fields(LineReport) if field.name not in ("line", "code")]


@dataclass(frozen=True)
class KernelReport:
    """One launch of a kernel: sizes (x, y, z), what each line did, and what that costs. `total` adds the lines up.

    `occupancy` is the share of a multiprocessor's threads that can be there at a time, by threads and shared memory of
    a block; registers are left out, since they depend on the real compiler. `seconds` are modelled.
    """

    name: str
    profile: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int
    """Shared memory of one block."""
    occupancy: float
    limited_by: str
    """What limits the occupancy: "threads", "blocks" or "shared memory"."""
    barriers: int
    """syncthreads, counted once a block."""
    seconds: float
    seed: int
    """From which the order of the blocks was drawn."""
    lines: tuple[LineReport, ...] = ()
    working: int = 0
    """Warps that read or wrote global memory."""

    @property
    def blocks(self) -> int:
        return self.grid[0] * self.grid[1] * self.grid[2]

    @property
    def threads(self) -> int:
        """Threads of one block."""
        return self.block[0] * self.block[1] * self.block[2]

    @property
    def warps(self) -> int:
        """Warps of all blocks."""
        return self.blocks * -(-self.threads // 32)

    @property
    def total(self) -> LineReport:
        """The sums over all lines."""
        return LineReport(**{name: sum(getattr(line, name) for line in self.lines) for name in _COUNTS})

    @property
    def bytes_read(self) -> int:
        """Bytes of the sectors that were read from global memory; what the L1 cache still had is not read again."""
        return (self.total.read_sectors - self.total.read_again) * SECTOR

    @property
    def bytes_written(self) -> int:
        return self.total.write_sectors * SECTOR

    @property
    def bytes_a_block(self) -> float:
        """Bytes of global memory that one block moves, on average."""
        return (self.bytes_read + self.bytes_written) / self.blocks

    @property
    def operations_a_block(self) -> float:
        """Arithmetic of one block, on average."""
        return self.total.operations / self.blocks

    def to_plain(self) -> dict[str, Any]:
        """Return the report as plain data, which JSON can say."""
        return asdict(self)

    @classmethod
    def from_plain(cls, data: dict[str, Any]) -> KernelReport:
        """Return the report that `to_plain` made. Raises TypeError, KeyError or ValueError for other data."""
        sizes = {name: tuple(map(int, data[name])) for name in ("grid", "block")}
        return cls(**{**data, **sizes, "lines": tuple(LineReport(**line) for line in data["lines"])})

    def __str__(self) -> str:
        total = self.total
        rows = [
            ("global reads", f"{total.read_sectors:,} sectors, ideal {total.read_ideal:,}"),
            ("global writes", f"{total.write_sectors:,} sectors, ideal {total.write_ideal:,}"),
            ("shared memory", f"{total.shared_passes:,} passes, {total.bank_conflicts:,} of them bank conflicts"),
            ("branches", f"{total.branches:,} by warps, {total.divergent:,} divergent"),
            ("occupancy", f"{self.occupancy:.0%}, limited by {self.limited_by}; registers left out"),
            ("a block", f"{self.bytes_a_block:,.0f} bytes, {self.operations_a_block:,.0f} operations"),
            ("modelled time", f"{self.seconds * 1e6:,.1f} us on {self.profile}"),
        ]
        head = f"{self.name}: {self.blocks:,} blocks of {self.threads:,} threads, {self.shared_bytes:,} bytes shared"
        return "\n".join([head, *(f"  {name:<14} {text}" for name, text in rows)])
