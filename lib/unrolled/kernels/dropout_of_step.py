"""Dropout whose random numbers are a function of seed, step and place: nothing is drawn ahead and no mask is kept.

The backward pass finds the same numbers again. They are those of SplitMix64 (Steele, Lea, Flood, 2014,
doi:10.1145/2660193.2660195): its last step, which scatters the bits of a counter, taken of a counter that starts at a
number scattered from seed and step.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from unrolled.kernels.kernel import Arrays, Kernel, Options

DROPOUT_OF_STEP = r"""
__device__ unsigned long long scattered(unsigned long long z) {
    z += 0x9e3779b97f4a7c15ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}
extern "C" __global__ void dropout_of_step(
    const T* __restrict__ x, const T* __restrict__ source, const long long* __restrict__ step, T* __restrict__ y,
    Index size, double rate, double seed) {
    Index at = blockIdx.x * (Index)blockDim.x + threadIdx.x;
    if (at >= size) return;
    unsigned long long start = scattered(scattered((unsigned long long)seed) + step[0]);
    float chance = (scattered(start + at) >> 40) * (1.0f / 16777216);  // 24 bits: all that a float can hold
    bool kept = chance >= (float)rate && (!MASKED || source[at] > 0);
    y[at] = kept ? x[at] * (T)(1 / (1 - rate)) : (T)0;
}
"""


def scattered(z: Any) -> Any:
    """Return the bits of z, an array of uint64, scattered."""
    with np.errstate(over="ignore"):
        z = z + np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def _dropout_of_step(inputs: Arrays, outputs: Arrays, options: Options) -> None:
    (x, source, step), (y,) = inputs, outputs
    start = scattered(scattered(np.array([int(options["seed"])], np.uint64)) + step.astype(np.uint64))
    chance = (scattered(start + np.arange(x.size, dtype=np.uint64)) >> np.uint64(40)).astype(np.float32) / 2**24
    kept = chance.reshape(x.shape) >= np.float32(options["rate"])
    if options["masked"]:
        kept &= source > 0
    y[...] = np.where(kept, x * x.dtype.type(1 / (1 - options["rate"])), 0)


dropout_of_step = Kernel(
    "dropout_of_step", DROPOUT_OF_STEP, _dropout_of_step, lambda inputs, outputs, options: 2 * int(inputs[0].size)
)
"""x or its gradient, what went into the dropout, the step (1,) int64, to y; `masked`: 0 where `source` is, too."""
