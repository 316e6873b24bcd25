"""What happened on a simulated GPU: events with modelled times, their sums, and JSON both ways."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from unrolled.simgpu.kernel_report import KernelReport
from unrolled.simgpu.lockstep.faults import Fault

PRODUCTS = ("matmul", "einsum", "product")
"""Kinds of launches that multiply matrices; the last is the library's own call of cuBLAS."""


class Lasting:
    """An event that lasts from start to end."""

    start: float
    end: float

    @property
    def seconds(self) -> float:
        return self.end - self.start


@dataclass(frozen=True)
class Launch(Lasting):
    """A kernel: when the host called (`issued`) and how long (`call`), when the device ran it, what it did.

    `graph`: which launch of a graph ran it (`GraphLaunch.number`), None for a launch of its own. `where` is the line
    that launched it, of a graph's kernel the line that was captured.
    """

    op: str
    stream: int
    issued: float
    call: float
    start: float
    end: float
    bytes_read: int
    bytes_written: int
    flops: int
    shape: tuple[int, ...] = ()
    dtype: str = ""
    where: str | None = None
    graph: int | None = None

    @property
    def nbytes(self) -> int:
        return self.bytes_read + self.bytes_written

    @property
    def is_product(self) -> bool:
        """Whether it multiplies matrices."""
        return self.op in PRODUCTS


@dataclass(frozen=True)
class GraphLaunch(Lasting):
    """A CUDA graph, launched by one call: its number and how many kernels it has, which are among the launches, too."""

    number: int
    kernels: int
    stream: int
    issued: float
    call: float
    start: float
    end: float
    where: str | None = None


@dataclass(frozen=True)
class Transfer(Lasting):
    """Bytes between host and device; `direction` is "to device" or "to host". A blocking one lets the host wait.

    `cause` is what of the package the program called ("asnumpy", "to_host", "__float__"), where that is known.
    """

    direction: str
    nbytes: int
    stream: int
    issued: float
    call: float
    start: float
    end: float
    blocking: bool = True
    cause: str = ""
    where: str | None = None


@dataclass(frozen=True)
class Allocation:
    """A buffer taken from the pool or given back (`freed`); `grew`: the pool had to ask the driver for more.

    `captured`: a capture was going on.
    """

    nbytes: int
    time: float
    freed: bool
    grew: bool = False
    where: str | None = None
    captured: bool = False


@dataclass(frozen=True)
class Synchronization(Lasting):
    """The host waited from start to end; `cause` is what made it wait."""

    start: float
    end: float
    cause: str
    where: str | None = None


Event = Launch | GraphLaunch | Transfer | Allocation | Synchronization | KernelReport | Fault

_LISTS = {"launches": Launch, "transfers": Transfer, "allocations": Allocation, "synchronizations": Synchronization}
_LISTS |= {"kernels": KernelReport, "faults": Fault, "graphs": GraphLaunch}
_LIST_OF = {kind: name for name, kind in _LISTS.items()}


@dataclass(frozen=True)
class Sums:
    """What the launches of one op add up to."""

    launches: int
    seconds: float
    bytes: int
    flops: int


@dataclass
class Trace:
    """What a GPU (named `profile`) did between two moments. All times are modelled, in seconds of the host's clock."""

    profile: str = ""
    start: float = 0.0
    end: float = 0.0
    """The host's clock when the trace was stopped."""
    device_end: float = 0.0
    """When the device had done all that it had been given by then."""
    launches: list[Launch] = field(default_factory=list)
    transfers: list[Transfer] = field(default_factory=list)
    allocations: list[Allocation] = field(default_factory=list)
    synchronizations: list[Synchronization] = field(default_factory=list)
    kernels: list[KernelReport] = field(default_factory=list)
    """What was counted in the program's own kernels (`simgpu.jit`), which are among the launches, too."""
    faults: list[Fault] = field(default_factory=list)
    """What those kernels did wrong that failed while they ran; they are in no other list."""
    graphs: list[GraphLaunch] = field(default_factory=list)
    """Launches of CUDA graphs. The kernels that they ran are among the launches."""

    def add(self, event: Event) -> None:
        """Append an event to the list of its kind."""
        getattr(self, _LIST_OF[type(event)]).append(event)

    def __len__(self) -> int:
        return sum(len(getattr(self, name)) for name in _LISTS)

    def __bool__(self) -> bool:
        return True  # a trace of nothing is a trace

    @property
    def seconds(self) -> float:
        """Seconds from the start until host and device are done."""
        return max(self.end, self.device_end) - self.start

    @property
    def host_launches(self) -> list[Launch | GraphLaunch]:
        """What the host launched, in order: kernels by themselves, and graphs, each of which is one."""
        alone: list[Launch | GraphLaunch] = [launch for launch in self.launches if launch.graph is None]
        return sorted([*alone, *self.graphs], key=lambda launch: launch.issued)

    def by_graph(self) -> dict[int, list[Launch]]:
        """Return the kernels that each launch of a graph ran, by its number."""
        found: dict[int, list[Launch]] = {}
        for launch in self.launches:
            if launch.graph is not None:
                found.setdefault(launch.graph, []).append(launch)
        return found

    @property
    def device_seconds(self) -> float:
        """Seconds in which the device runs a kernel or a transfer; what overlaps counts once."""
        work: list[Launch | Transfer] = [*self.launches, *self.transfers]
        return covered((max(self.start, event.start), event.end) for event in work)

    @property
    def host_seconds(self) -> float:
        """Seconds in which the host works: all of its time but for waiting."""
        return self.end - self.start - self.waiting

    @property
    def waiting(self) -> float:
        """Seconds in which the host waits for the device, in synchronizations and in blocking transfers."""
        waits = [(event.start, event.end) for event in self.synchronizations]
        waits += [(event.issued, event.end) for event in self.transfers if event.blocking]
        calls = sum(event.call for event in self.transfers if event.blocking)
        return max(0.0, covered(waits) - calls)

    @property
    def host_parts(self) -> dict[str, float]:
        """The host's seconds by what it did: "launching", "waiting", "copying", and "Python and memory", the rest."""
        launching = sum(event.call for event in self.host_launches)
        blocked = [event for event in self.transfers if event.blocking]
        copying = sum(event.call for event in self.transfers) + sum(event.seconds for event in blocked)
        waiting = sum(event.seconds for event in self.synchronizations)
        waiting += sum(max(0.0, event.start - event.issued - event.call) for event in blocked)
        rest = max(0.0, self.end - self.start - launching - waiting - copying)
        return {"launching": launching, "waiting": waiting, "copying": copying, "Python and memory": rest}

    @property
    def idle(self) -> float:
        """Seconds in which the device has nothing to do."""
        return self.seconds - self.device_seconds

    @property
    def bytes(self) -> int:
        """Bytes read and written by kernels."""
        return sum(event.nbytes for event in self.launches)

    @property
    def flops(self) -> int:
        return sum(event.flops for event in self.launches)

    def by_op(self) -> dict[str, Sums]:
        """Return the sums of each op, the longest first."""
        groups: dict[str, list[Launch]] = {}
        for event in self.launches:
            groups.setdefault(event.op, []).append(event)
        sums = {
            op: Sums(len(each), sum(e.seconds for e in each), sum(e.nbytes for e in each), sum(e.flops for e in each))
            for op, each in groups.items()
        }
        return dict(sorted(sums.items(), key=lambda item: (-item[1].seconds, item[0])))

    def to_json(self) -> str:
        """Return all of the trace as one line of JSON, which `from_json` reads."""
        return json.dumps({"format": FORMAT, **asdict(self)}, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Trace:
        """Return the trace that `to_json` wrote. Raises ValueError for anything else."""
        try:
            data = json.loads(text)
            if data.pop("format") != FORMAT:
                raise ValueError("another version")
            for name, kind in _LISTS.items():
                data[name] = [_event(kind, item) for item in data.get(name, [])]
            return cls(**data)
        except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
            raise ValueError(f"no trace of the simulated GPU: {error!r:.200}") from None


FORMAT = 2
"""Version of the JSON that `Trace.to_json` writes."""


def covered(intervals: Iterable[tuple[float, float]]) -> float:
    """Return the seconds that at least one of the intervals covers."""
    total, until = 0.0, float("-inf")
    for start, end in sorted(intervals):
        total += max(0.0, end - max(start, until))
        until = max(until, end)
    return total


def _event(kind: Any, item: dict[str, Any]) -> Any:
    if set(item) != {f.name for f in fields(kind)}:
        raise ValueError(f"{kind.__name__} with {', '.join(map(str, item))}")
    if kind in (KernelReport, Fault):
        return kind.from_plain(item)
    if "shape" in item:
        item["shape"] = tuple(item["shape"])
    return kind(**item)
