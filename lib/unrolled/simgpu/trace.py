"""What happened on a simulated GPU: events with modelled times, their sums, and JSON both ways."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, fields
from typing import Any


@dataclass(frozen=True)
class Launch:
    """A kernel: when the call began (`issued`), when the device ran it, what it moved and computed."""

    op: str
    stream: int
    issued: float
    start: float
    end: float
    bytes_read: int
    bytes_written: int
    flops: int
    shape: tuple[int, ...] = ()
    dtype: str = ""
    where: str | None = None

    @property
    def seconds(self) -> float:
        return self.end - self.start

    @property
    def nbytes(self) -> int:
        return self.bytes_read + self.bytes_written


@dataclass(frozen=True)
class Transfer:
    """Bytes between host and device; `direction` is "to device" or "to host"."""

    direction: str
    nbytes: int
    stream: int
    issued: float
    start: float
    end: float
    where: str | None = None

    @property
    def seconds(self) -> float:
        return self.end - self.start


@dataclass(frozen=True)
class Allocation:
    """A buffer taken from the pool or given back (`freed`); `grew`: the pool had to ask the driver for more."""

    nbytes: int
    time: float
    freed: bool
    grew: bool = False
    where: str | None = None


@dataclass(frozen=True)
class Synchronization:
    """The host waited from start to end; `cause` is what made it wait."""

    start: float
    end: float
    cause: str
    where: str | None = None

    @property
    def seconds(self) -> float:
        return self.end - self.start


Event = Launch | Transfer | Allocation | Synchronization


@dataclass
class Trace:
    """All that happened between two readings of the host clock."""

    profile: str = ""
    start: float = 0.0
    end: float = 0.0
    launches: list[Launch] = field(default_factory=list)
    transfers: list[Transfer] = field(default_factory=list)
    allocations: list[Allocation] = field(default_factory=list)
    synchronizations: list[Synchronization] = field(default_factory=list)

    def add(self, event: Event) -> None:
        """Append an event to the list of its kind."""
        lists: dict[type, list[Any]] = {
            Launch: self.launches,
            Transfer: self.transfers,
            Allocation: self.allocations,
            Synchronization: self.synchronizations,
        }
        lists[type(event)].append(event)

    @property
    def seconds(self) -> float:
        """From start to end on the host clock."""
        return self.end - self.start

    def to_json(self) -> str:
        return json.dumps({"trace": 1, **asdict(self)})

    @classmethod
    def from_json(cls, text: str) -> Trace:
        """Raises ValueError for what `to_json` does not write."""
        data = json.loads(text)
        kinds = {
            "launches": Launch,
            "transfers": Transfer,
            "allocations": Allocation,
            "synchronizations": Synchronization,
        }
        trace = cls(data["profile"], data["start"], data["end"])
        for name, kind in kinds.items():
            setattr(trace, name, [_event(kind, item) for item in data[name]])
        return trace


def _event(kind: Any, item: dict[str, Any]) -> Any:
    return kind(**{f.name: tuple(item[f.name]) if f.name == "shape" else item[f.name] for f in fields(kind)})


def busy(intervals: Iterable[tuple[float, float]]) -> float:
    """Seconds that at least one of the intervals covers."""
    total, covered = 0.0, float("-inf")
    for start, end in sorted(intervals):
        total += max(0.0, end - max(start, covered))
        covered = max(covered, end)
    return total
