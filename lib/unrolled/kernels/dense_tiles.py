"""A dense layer for many samples: products in tiles, float32 throughout, all of a backward pass in one launch.

A block computes a tile of the product. It brings strips of both factors to shared memory, the next pair of strips while
it computes with the last. A thread keeps DOWN x ALONG sums in registers; TEAMS of threads share out a strip. A small
product has few tiles: then SPLIT blocks share the inner sum of one, and the last of them adds their parts up.
"""

from __future__ import annotations

from unrolled.kernels.dense import backward, backward_flops, flops, forward
from unrolled.kernels.kernel import LAST_BLOCK, Kernel, of_blocks, source

dense_tiles = Kernel(
    "dense_tiles", LAST_BLOCK + source("dense_tiles_common") + source("dense_tiles"), forward, flops, threads=of_blocks
)
"""x (N, D), weight (O, D), bias to y (N, O). Scratch: `parts`, ROWS * COLUMNS for each tile and split, and counters."""
dense_tiles_backward = Kernel(
    "dense_tiles_backward",
    LAST_BLOCK + source("dense_tiles_common") + source("dense_tiles_backward"),
    backward,
    backward_flops,
    threads=of_blocks,
)
"""The gradient by y (N, O), x and weight to those by x, weight and bias. Scratch as above, for both products."""
