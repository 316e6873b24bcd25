"""What an exercise asks: cases, reference, tolerance, hints, points and speed.

Declarations only. Nothing here runs a learner's code, shows anything or knows a notebook, so the same specs serve the
learner's own check and a judge in another process with secret seeds.
"""

from __future__ import annotations

import copy
import zlib
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import ModuleType
from typing import Any

import numpy as np

from .compare import Mismatch, Remark
from .domain import Drawing as Drawing
from .domain import Inputs as Inputs
from .domain import cover, shown_by
from .mistakes import Function as Function
from .mistakes import Mistake as Mistake

Compare = Callable[[Any, Any, Inputs], Mismatch | Remark | None]


@dataclass(frozen=True)
class Draw:
    """A value drawn afresh from a seed: `make(rng)` returns it, and `quick(rng)`, if given, where many are timed."""

    make: Callable[[np.random.Generator], Any]
    quick: Callable[[np.random.Generator], Any] | None = None


def normal(*shape: int, dtype: type = np.float32) -> Draw:
    """Return a draw of an array of this shape from the standard normal distribution.

    Where calls are timed: evenly from -2 to 2 in steps of 2^-14. Drawing took most of the time, and takes a seventh so.
    """

    def quick(rng: np.random.Generator) -> Any:
        return rng.integers(-(2**15), 2**15, shape, dtype=np.int16).astype(dtype) * dtype(2**-14)

    return Draw(lambda rng: rng.standard_normal(shape).astype(dtype), quick)


images = filters = vector = normal  # (N, C, H, W), (O, C, KH, KW), (N,). Images are not 0..1: a lost sign must show


def normals(rng: np.random.Generator, **shapes: tuple[int, ...]) -> Inputs:
    """Draw an array of float32 from the normal distribution for each of these shapes."""
    return {name: normal(*shape).make(rng) for name, shape in shapes.items()}


def sized(arguments: Callable[..., Mapping[str, Any]], low: Any, high: Any, count: int | None = None) -> Drawing:
    """Return what draws `arguments(*sizes)`: `count` sizes from low to high - 1, or one for each of lists of these."""
    return lambda rng: draw_all(arguments(*rng.integers(low, high, count).tolist()), rng)


@dataclass(frozen=True)
class Budget:
    """What a function may do on the GPU in a case, counted on the simulated one. None: as often as it likes.

    What concerns kernels of its own (`device.jit`) is what all of them do together.
    """

    launches: int | None = None  # kernels that it starts; a graph counts as one launch where `graphs` asks for some
    because: str = ""  # how so many launches, or so many bytes, come about, in words
    products: int | None = None  # those of them that multiply matrices, or sum what others multiplied
    flops: Callable[[Inputs], float] | None = None  # of the case's inputs: operations of all launches, on real numbers
    transfers: int | None = 0  # copies between host and GPU, either way
    synchronizations: int | None = 0  # waits for the GPU, other than those that are part of a transfer
    largest: Callable[[Inputs], float] | None = None  # of the case's inputs: bytes of any array that it makes
    held: Callable[[Inputs], float] | None = None  # and of all that are there at a time; in float64, twice as many
    float64: int | None = None  # launches whose result is float64: 0 where nothing must compute in it by accident
    graphs: int = 0  # launches of CUDA graphs that there have to be at least
    nodes: int | None = None  # kernels in each of these graphs
    made: int | None = None  # arrays that it makes while a stream is capturing
    own: int = 0  # launches of kernels of its own that there have to be at least; if any, they write all of the result
    working: float = 0.0  # share of their warps that has to read or write global memory
    shared_bytes: float | None = None  # shared memory of a block, for each of its threads
    read_sectors: float | None = None  # sectors of 32 bytes that they read, as a multiple of the fewest for the values
    written_sectors: float | None = None
    bank_conflicts: int | None = None
    shared_passes: Callable[[Inputs], float] | None = None  # requests of warps to shared memory, conflicts included
    bytes_read: Callable[[Inputs], float] | None = None  # of the case's inputs: bytes of the values that they may read
    bytes_written: Callable[[Inputs], float] | None = None


@dataclass(frozen=True)
class Case:
    """One set of arguments. A `Draw` among them is drawn from the seed; a `draw` function draws all of them at once.

    With `on_gpu`, arrays, also in lists, tuples and dictionaries, go to the simulated GPU and the result comes back. If
    the function may do without, `anywhere`, NumPy's arrays come first, and the GPU only where they go wrong.
    """

    name: str
    arguments: Mapping[str, Any]
    draw: Drawing | None = None
    on_gpu: bool = False
    budget: Budget | None = None
    anywhere: bool = False

    @property
    def varies(self) -> bool:
        """Whether another seed gives other inputs."""
        return self.draw is not None or any(isinstance(value, Draw) for value in self.arguments.values())

    @cached_property
    def calls_back(self) -> bool:
        """Whether the arguments are functions, some of them."""
        return any(map(callable, self.inputs(0).values()))

    @cached_property
    def shown(self) -> set[str] | None:
        """The features that its inputs show; None where they are others at another seed."""
        return None if self.varies else shown_by(self.inputs(0))

    def inputs(self, seed: int) -> Inputs:
        """Return the keyword arguments for this seed: new objects each time, so that no call changes another's."""
        if not self.varies:
            return dict(copy.deepcopy(self.arguments))
        rng = np.random.default_rng([seed, zlib.crc32(self.name.encode())])
        return self.draw(rng) if self.draw else draw_all(self.arguments, rng)


def case(name: str, /, **arguments: Any) -> Case:
    """Return a case with these keyword arguments; each may be a value or a `Draw`."""
    return Case(name, arguments)


def random_case(name: str, draw: Callable[..., Inputs], *sizes: Any, **options: Any) -> Case:
    """Return a case whose shapes are drawn too: `draw(rng, *sizes, **options)` returns all keyword arguments."""
    return Case(name, {}, lambda rng: draw(rng, *sizes, **options))


def gpu_case(name: str, /, budget: Budget | None = None, **arguments: Any) -> Case:
    """Return a case on the GPU: arrays are device arrays, the budget is kept. `budget` cannot be an argument's name."""
    return Case(name, arguments, on_gpu=True, budget=budget)


def random_gpu_case(name: str, draw: Drawing, budget: Budget | None = None, anywhere: bool = False) -> Case:
    """Return a case on the GPU whose shapes are drawn too. `draw` gives NumPy arrays."""
    return Case(name, {}, draw, on_gpu=True, budget=budget, anywhere=anywhere)


@dataclass(frozen=True)
class Speed:
    """The learner's function must be `at_least` times as fast as `baseline` on `inputs` (which may hold `Draw`s).

    With them one call of the baseline takes 10-50 ms on two cores. With `gpu`, both run on a real GPU, or are deferred.
    With `ranks`, the function is a program of ranks and runs in so many processes, on share(inputs, rank, ranks). The
    baseline has all inputs, in one process, and each rank's result must be what it returns.
    Whoever is too slow reads the `advice`, and before it, where an answer needs none of its own (`loops`), which line
    loops.
    """

    baseline: Function
    inputs: Mapping[str, Any]
    at_least: float
    against: str  # the baseline in words, as in "times as fast as a loop over output positions"
    points: int = 1
    gpu: bool = False
    advice: str = ""
    loops: bool = True
    leaderboard: bool = False  # whether the class report ranks those who ask for it: see `journal.leaderboard`
    ranks: int = 1
    share: Callable[[Inputs, int, int], tuple[Any, ...]] | None = None

    def draw_inputs(self, seed: int, count: int = 16) -> list[Inputs]:
        """Return `count` fresh sets of keyword arguments."""
        rng = np.random.default_rng([seed, zlib.crc32(b"speed")])
        quick = {
            name: Draw(value.quick) if isinstance(value, Draw) and value.quick else value
            for name, value in self.inputs.items()
        }
        return [draw_all(quick, rng) for _ in range(count)]

    def draw_case(self, seed: int) -> Inputs:
        """Return one of them as a case's: with ranks, an emulated network and the arguments of each."""
        inputs = self.draw_inputs(seed, 1)[0]
        if self.share is None:
            return inputs
        from unrolled.parallel import Network

        shares = [self.share(inputs, rank, self.ranks) for rank in range(self.ranks)]
        return {"network": Network(self.ranks, seed=seed % 2**31, keep=True), "arguments": shares}


@dataclass(frozen=True)
class Rung:
    """A step of the ladder of its `what`, the work: seconds for `inputs`, `images` images, projected to an epoch."""

    label: str
    what: str
    inputs: Mapping[str, Any]
    images: int

    def draw_inputs(self, seed: int) -> list[Inputs]:
        """Return four fresh sets of keyword arguments."""
        rng = np.random.default_rng([seed, zlib.crc32(b"rung")])
        return [draw_all(self.inputs, rng) for _ in range(4)]


@dataclass(frozen=True)
class Spec:
    """One exercise. `points` are for correctness; a `speed` part adds its own.

    A result is right if every value lies within `tolerance` times the largest expected magnitude, unless `compare`
    says otherwise. Inputs are plain data, or objects whose calls take and return plain data: then a judge in another
    process can keep such an object, and what it recorded, out of the function's reach.
    """

    reference: Function
    cases: Sequence[Case]
    points: int
    hints: tuple[str, str, str]
    tolerance: float = 1e-4
    mistakes: Sequence[Mistake] = ()
    speed: Speed | None = None
    rung: Rung | None = None
    compare: Compare | None = None
    """Judges where equality is not the question: `compare(got, expected, inputs)` is what is wrong, else None or a
    remark on what is right. The inputs are those that the function was given, so what they recorded of it can be judged
    as well."""
    call: Callable[[Function, Inputs], Any] | None = None
    """How a case uses the function, where one call with all inputs is not enough: `call(function, inputs)` is the
    result. It runs on the judge's side: the function sees nothing of the inputs but what it passes on."""
    expected: Callable[[Inputs], Any] | None = None
    """What `call` gives with the reference, where that takes much longer than to compute it from the inputs."""
    ranks: bool = False
    """Whether the function is a program of emulated ranks. Then `call` gets `on_ranks(function)` of
    `unrolled.parallel.emulation`, which runs it once on each, where it lives; the network stays an input."""
    crash_advice: Callable[[Sequence[str], Inputs], tuple[str, ...]] | None = None
    """Lines to say besides an error, by its own lines and by the inputs, which may have recorded what was done."""
    on_real: bool = True
    """Whether cases for the GPU run on a real one, too, where it exists: not if `call` launches the function, a kernel,
    whose results come back in its arguments."""
    limit: float | None = None  # seconds for a case that may take longer than is usual: training, for instance
    allows: Sequence[Function | ModuleType] = ()
    """What a learner's function may call of the library: functions, classes, modules. All else of it refuses."""
    new: bool = False  # whether the text asks for new arrays: none of the arguments then
    domain: Case | None = None
    """A case that draws any legal inputs, whose name says what they are. A check takes a few that cover it: see
    `domain.cover`."""
    numbers: Mapping[str, float] = field(default_factory=dict)
    """What else the check asks, by the names under which the lesson's text quotes it: {launches} for "launches"."""
    leaderboard: bool = False
    """Whether the class report ranks by the `ratio` of the remark that `compare` makes. Where a `speed` is what ranks,
    it has a `leaderboard` of its own."""

    @property
    def total_points(self) -> int:
        """The points that the check's cell carries in nbgrader."""
        return self.points + (self.speed.points if self.speed else 0)

    def judged(self) -> Spec:
        """Return the spec as a grading takes it: what a GPU is timed for without points is for the notebook alone.

        There arrays lie on the GPU. To bring a judge's, from another process, may take longer than a kernel.
        """
        unpaid = self.speed is not None and self.speed.gpu and not self.speed.points
        return replace(self, speed=None) if unpaid else self

    def drawn(self, seed: int, shown: Container[str] = ()) -> list[Case]:
        """Return cases of the domain, drawn from this seed, that have what is common in it and is not shown already.

        And a case once more, with other values, of the same shapes if it can be: what is kept of a call is wrong there.
        Where a call gets functions or a communicator, which are new ones each time, nothing can be kept.
        """
        domain = self.domain
        if domain is None or domain.draw is None:
            return []
        start = seed, zlib.crc32(domain.name.encode())
        kind = domain.on_gpu, domain.budget
        drawn = [
            _Drawn(domain.name, {}, draw, *kind, anywhere=domain.anywhere and place > 0)
            for place, draw in enumerate(cover(domain.draw, start, shown))
        ]
        again = sorted((case for case in self.cases if case.varies), key=lambda case: case.draw is not None)[:1]
        plain = (case for case in again if not self.ranks and not case.calls_back)
        return [*drawn, *(_repeated(case, seed + 1, domain.anywhere) for case in plain)]

    def timed_result(self, inputs: Mapping[str, Any]) -> Any:
        """Return what a timed call with these inputs returns: with ranks, the results of all."""
        if self.speed is None or self.speed.ranks == 1:
            return self.reference(**inputs)
        return np.stack([self.speed.baseline(**inputs)] * self.speed.ranks)


def _repeated(case: Case, seed: int, anywhere: bool) -> Case:
    name = f"{case.name}, other values"
    return _Drawn(name, {}, lambda _: case.inputs(seed), case.on_gpu, case.budget, anywhere)


class _Drawn(Case):
    """A case that asks no generator: to make one takes as long as many a function."""

    def inputs(self, seed: int) -> Inputs:
        return self.draw(_UNASKED) if self.draw else {}


_UNASKED = np.random.default_rng(0)


def variant(exercise: Spec, /, **changes: Any) -> Spec:
    """Return a variant's spec: as the exercise but for what is named."""
    return replace(exercise, **changes)


def draw_all(arguments: Mapping[str, Any], rng: np.random.Generator) -> Inputs:
    """Return these arguments, drawn where they are draws; of all others a copy."""
    return {
        name: value.make(rng) if isinstance(value, Draw) else copy.deepcopy(value) for name, value in arguments.items()
    }
