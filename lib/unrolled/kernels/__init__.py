"""Our own GPU kernels, one concept a file: CUDA source beside a NumPy function that computes the same.

Long sources lie in `cuda/`, where an editor knows what they are.

`unrolled.ops` and `unrolled.nn.optim` use them for arrays of CuPy and of the simulated GPU.
"""

from unrolled.kernels.attention import attention, attention_constants
from unrolled.kernels.batches import gather
from unrolled.kernels.columns import col2im, im2col
from unrolled.kernels.convolution_inputs import convolution_inputs, unroute
from unrolled.kernels.dense import dense, dense_backward
from unrolled.kernels.dense_tiles import dense_tiles, dense_tiles_backward
from unrolled.kernels.dropout_of_step import dropout_of_step
from unrolled.kernels.half import filters_wide, im2col_wide, relu_wide
from unrolled.kernels.head import head, head_weights
from unrolled.kernels.kernel import NONE, Constants, Kernel, constants, runs_on, take, take_half
from unrolled.kernels.loss import count_right, softmax_cross_entropy
from unrolled.kernels.lstm import lstm_cell, lstm_cell_backward
from unrolled.kernels.optimizers import FROM_ROW, adadelta, adam, momentum, nesterov, scaled, sgd
from unrolled.kernels.persistent import lstm_persistent, lstm_persistent_backward, persists
from unrolled.kernels.pooled_convolution import convolution_weights, pooled_convolution
from unrolled.kernels.pooling import avg_pool, avg_pool_backward, max_pool, max_pool_with_indices, max_unpool
from unrolled.kernels.products import PLAIN, TURN_A, TURN_B, filters, product
from unrolled.kernels.small_products import matmul, small_product
from unrolled.kernels.sums import mean, sum_filters, sum_first_axis
from unrolled.kernels.values import add_row, dropout, relu, relu_backward

__all__ = ["NONE", "Constants", "Kernel", "by_name", "constants", "runs_on", "take", "take_half"]
__all__ += ["convolution_inputs", "convolution_weights", "dense", "dense_backward", "dense_tiles", "gather"]
__all__ += ["FROM_ROW", "dense_tiles_backward", "dropout_of_step", "head", "head_weights"]
__all__ += ["attention", "attention_constants", "pooled_convolution", "unroute"]
__all__ += ["filters_wide", "im2col_wide", "relu_wide"]
__all__ += ["adadelta", "adam", "momentum", "nesterov", "scaled", "sgd"]
__all__ += ["avg_pool", "avg_pool_backward", "max_pool", "max_pool_with_indices", "max_unpool"]
__all__ += ["lstm_cell", "lstm_cell_backward", "lstm_persistent", "lstm_persistent_backward", "persists"]
__all__ += ["PLAIN", "TURN_A", "TURN_B", "filters", "matmul", "mean", "product", "small_product"]
__all__ += ["sum_filters", "sum_first_axis"]
__all__ += ["add_row", "col2im", "count_right", "dropout", "im2col", "relu", "relu_backward", "softmax_cross_entropy"]

KERNELS = {kernel.name: kernel for kernel in list(globals().values()) if isinstance(kernel, Kernel)}
KERNELS |= {kernel.name: kernel for kernel in FROM_ROW.values()}


def by_name(name: str) -> Kernel:
    """Return the kernel of that name. Raises KeyError for an unknown one."""
    return KERNELS[name]
