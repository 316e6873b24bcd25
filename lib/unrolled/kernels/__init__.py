"""Our own GPU kernels, one concept a file: CUDA source beside a NumPy function that computes the same.

`unrolled.ops` and `unrolled.nn.optim` use them for arrays of CuPy and of the simulated GPU.
"""

from unrolled.kernels.kernel import NONE, Constants, Kernel, constants, runs_on, take
from unrolled.kernels.loss import count_right, softmax_cross_entropy
from unrolled.kernels.optimizers import adadelta, adam, momentum, nesterov, scaled, sgd
from unrolled.kernels.pooling import avg_pool, avg_pool_backward, max_pool, max_pool_with_indices, max_unpool
from unrolled.kernels.products import PLAIN, TURN_A, TURN_B, filters, product
from unrolled.kernels.sums import mean, sum_filters, sum_first_axis
from unrolled.kernels.values import add_row, dropout, relu, relu_backward
from unrolled.kernels.windows import col2im, im2col

__all__ = [
    "NONE",
    "PLAIN",
    "TURN_A",
    "TURN_B",
    "Constants",
    "Kernel",
    "adadelta",
    "adam",
    "add_row",
    "avg_pool",
    "avg_pool_backward",
    "by_name",
    "col2im",
    "constants",
    "count_right",
    "dropout",
    "filters",
    "im2col",
    "max_pool",
    "max_pool_with_indices",
    "max_unpool",
    "mean",
    "momentum",
    "nesterov",
    "product",
    "relu",
    "relu_backward",
    "runs_on",
    "scaled",
    "sgd",
    "softmax_cross_entropy",
    "sum_filters",
    "sum_first_axis",
    "take",
]

KERNELS = {kernel.name: kernel for kernel in list(globals().values()) if isinstance(kernel, Kernel)}


def by_name(name: str) -> Kernel:
    """Return the kernel of that name. Raises KeyError for an unknown one."""
    return KERNELS[name]
