"""Random numbers that are drawn on the device. A generator's state lies there too, as cuRAND keeps it.

`default_rng(seed)` gives the numbers of NumPy's generator of that seed, bit for bit; CuPy's own differ from both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from unrolled.simgpu import current
from unrolled.simgpu.array import check, launch, ndarray
from unrolled.simgpu.command import Options
from unrolled.simgpu.creation import assign, full


class Generator:
    """A generator of arrays on the device, as numpy.random.Generator is on the host."""

    def __init__(self, seed: Any = None, library: str = "") -> None:
        self._seed, self._library = _plain_seed(seed), library
        self._state: ndarray | None = None

    def random(self, size: Any = None, dtype: Any = np.float64, out: ndarray | None = None) -> ndarray:
        """Draw uniform numbers from [0, 1)."""
        return self._draw("random", size, dtype, {"dtype": np.dtype(dtype).name}, out)

    def standard_normal(self, size: Any = None, dtype: Any = np.float64, out: ndarray | None = None) -> ndarray:
        """Draw normal numbers of mean 0 and standard deviation 1."""
        return self._draw("standard_normal", size, dtype, {"dtype": np.dtype(dtype).name}, out)

    def normal(self, loc: float = 0.0, scale: float = 1.0, size: Any = None) -> ndarray:
        """Draw normal numbers of mean `loc` and standard deviation `scale`, float64."""
        return self._draw("normal", size, np.float64, {"loc": float(loc), "scale": float(scale)})

    def uniform(self, low: float = 0.0, high: float = 1.0, size: Any = None) -> ndarray:
        """Draw uniform numbers from [low, high), float64."""
        return self._draw("uniform", size, np.float64, {"low": float(low), "high": float(high)})

    def integers(self, low: int, high: int | None = None, size: Any = None, dtype: Any = np.int64) -> ndarray:
        """Draw integers from [low, high), or from [0, low) without high. Raises ValueError where there are none."""
        first, last = (0, low) if high is None else (low, high)
        if first >= last:
            raise ValueError("low >= high")
        if last - first == 1 and self._library:  # CuPy draws nothing then: a capture goes on
            return full(() if size is None else size, first, dtype)
        bounds = {"low": int(first), "high": int(last), "dtype": np.dtype(dtype).name}
        return self._draw("integers", size, dtype, bounds)

    def permutation(self, x: Any) -> ndarray:
        """Return the whole numbers below x, or the rows of an array x, in random order."""
        count = len(x) if isinstance(x, ndarray) else int(x)
        order = self._draw("permutation", count, np.int64, {"n": count})
        return x[order] if isinstance(x, ndarray) else order

    def shuffle(self, x: ndarray) -> None:
        """Bring the rows of an array into random order, in place."""
        assign(x, self.permutation(x))

    def _draw(self, method: str, size: Any, dtype: Any, arguments: Options, out: ndarray | None = None) -> ndarray:
        if out is not None and check(out).dtype != dtype:
            text = f"Supplied output array has the wrong type. Expected {np.dtype(dtype)}, got {out.dtype}"
            raise TypeError(text)
        wanted = tuple(size) if isinstance(size, Sequence) else (size,)
        if out is not None and size is not None and out.shape != wanted:
            raise ValueError("size must match out.shape when used together")
        result = ndarray.made_for(self._library, () if size is None else size, dtype) if out is None else out
        options = {"method": method, "arguments": arguments, "library": self._library}
        launch("random", [], [result, self._ready()], options)
        return result

    def _ready(self) -> ndarray:
        """The state, on the machine in use."""
        if self._state is None or self._state._memory.machine is not current.machine():
            self._state = ndarray.made_for(self._library, 6, np.uint64)  # what NumPy's PCG64 remembers
            launch("random.seed", [], [self._state], {"seed": self._seed, "library": self._library})
        return self._state


def default_rng(seed: Any = None) -> Generator:
    """Return a generator of the numbers of numpy.random.default_rng(seed); a generator comes back as it is."""
    return seed if isinstance(seed, Generator) else Generator(seed)


def seed(seed: Any = None) -> None:
    """Start the common generator anew; the same seed gives the same numbers."""
    _common._seed, _common._state = _plain_seed(seed), None


def rand(*size: int, dtype: Any = float) -> ndarray:
    """Draw uniform numbers from [0, 1), float64 unless told: rand(rows, columns)."""
    return _common.random(size, dtype)


def randn(*size: int, dtype: Any = float) -> ndarray:
    """Draw normal numbers of mean 0 and standard deviation 1, float64 unless told: randn(rows, columns)."""
    return _common.standard_normal(size, dtype)


def normal(loc: float = 0.0, scale: float = 1.0, size: Any = None, dtype: Any = float) -> ndarray:
    """Draw normal numbers of mean `loc` and standard deviation `scale`."""
    return _common.normal(loc, scale, size).astype(dtype, copy=False)


def uniform(low: float = 0.0, high: float = 1.0, size: Any = None, dtype: Any = float) -> ndarray:
    """Draw uniform numbers from [low, high)."""
    return _common.uniform(low, high, size).astype(dtype, copy=False)


def __getattr__(name: str) -> Any:
    raise AttributeError(f"random.{name} is not simulated")


def _plain_seed(seed: Any) -> Any:
    """The seed as plain data; without one, a random one."""
    if seed is None:
        return np.random.SeedSequence().entropy
    if isinstance(seed, (Sequence, np.ndarray)):
        return [int(word) for word in seed]
    if int(seed) < 0:
        raise ValueError(f"seed is {seed}; expected 0 or more")
    return int(seed)


_common = Generator(library="cuRAND")  # of the functions that are given no generator; CuPy's draw by this library
random = random_sample = sample = ranf = _common.random
standard_normal = _common.standard_normal
randint, permutation, shuffle = _common.integers, _common.permutation, _common.shuffle
