"""Fewer and smaller numbers: float16, int8, pruned and binary weights, and products of them. On the host, in NumPy.

A smaller number is a choice of what to lose, so dtypes go in and come out as each function says.
"""

from unrolled.ops.precision.binary import binarize, binary_matmul, pack_signs, straight_through
from unrolled.ops.precision.half import bfloat16, to_half
from unrolled.ops.precision.int8 import clipped_share, int8_scale, quantize_int8
from unrolled.ops.precision.int8_products import int8_matmul
from unrolled.ops.precision.loss_scale import LossScale, next_loss_scale
from unrolled.ops.precision.pruning import magnitude_mask, sparse, sparse_matmul

__all__ = ["LossScale", "bfloat16", "next_loss_scale", "to_half"]
__all__ += ["clipped_share", "int8_matmul", "int8_scale", "quantize_int8"]
__all__ += ["magnitude_mask", "sparse", "sparse_matmul"]
__all__ += ["binarize", "binary_matmul", "pack_signs", "straight_through"]
