"""The mathematics of the course as pure functions: the plain version beside the fast one, one concept a file.

Arrays of any registered library (`unrolled.device`) go in and come out. Inputs are never changed. float32 in gives
float32 out, computed in float32; where an operation computes, integers count as float32, and where it only moves or
selects values (im2col, max-pooling, relu) the dtype stays as it is. float16 is computed in float32 and rounded once, on
every device; `fft_conv2d` refuses it. Other small numbers are `ops.precision`.
"""

from unrolled.ops import precision
from unrolled.ops.activation import (
    leaky_relu,
    leaky_relu_backward,
    relu,
    relu_backward,
    sigmoid,
    sigmoid_backward,
    softmax,
    softmax_backward,
    softplus,
    softplus_backward,
    step,
    step_backward,
    tanh,
    tanh_backward,
)
from unrolled.ops.amdahl import amdahl_speedup
from unrolled.ops.attention import (
    attention,
    attention_backward,
    attention_loops,
    attention_plain,
    attention_plain_backward,
    attention_weights,
    attention_with_logsumexp,
)
from unrolled.ops.average import avg_pool2d, avg_pool2d_backward
from unrolled.ops.columns import col2im, col2im_loops, im2col
from unrolled.ops.conv import conv2d, conv2d_backward, conv2d_loops, conv2d_output_size, conv2d_positions
from unrolled.ops.dropout import dropout, dropout_backward
from unrolled.ops.fft import fft_conv2d, fft_conv2d_backward
from unrolled.ops.linear import affine, affine_backward, affine_one_by_one, matmul_loops, matmul_rows
from unrolled.ops.loss import mean_squared_error, softmax_cross_entropy
from unrolled.ops.lstm import FORMS as LSTM_FORMS
from unrolled.ops.lstm import (
    LSTMGates,
    LSTMWeights,
    lstm,
    lstm_backward,
    lstm_step,
    lstm_step_backward,
    lstm_with_gates,
)
from unrolled.ops.normalization import batch_norm2d, batch_norm2d_backward, batch_statistics
from unrolled.ops.numeric import numeric_gradient
from unrolled.ops.pool import max_pool2d, max_pool2d_indices, max_pool2d_loops, max_pool2d_with_indices
from unrolled.ops.sorting import bubble_sort, merge, merge_sort
from unrolled.ops.unpool import max_pool2d_backward, max_unpool2d, max_unpool2d_loops, max_unpool2d_mask
from unrolled.ops.winograd import winograd_conv2d, winograd_conv2d_backward

__all__ = ["leaky_relu", "leaky_relu_backward", "relu", "relu_backward", "sigmoid", "sigmoid_backward", "softmax"]
__all__ += ["softmax_backward", "softplus", "softplus_backward", "step", "step_backward", "tanh", "tanh_backward"]
__all__ += ["affine", "affine_backward", "affine_one_by_one", "matmul_loops", "matmul_rows"]
__all__ += ["conv2d", "conv2d_backward", "conv2d_loops", "conv2d_output_size", "conv2d_positions"]
__all__ += ["fft_conv2d", "fft_conv2d_backward", "winograd_conv2d", "winograd_conv2d_backward"]
__all__ += ["col2im", "col2im_loops", "im2col"]
__all__ += ["avg_pool2d", "avg_pool2d_backward", "max_pool2d", "max_pool2d_backward", "max_pool2d_indices"]
__all__ += ["max_pool2d_loops", "max_pool2d_with_indices", "max_unpool2d", "max_unpool2d_loops", "max_unpool2d_mask"]
__all__ += ["attention", "attention_backward", "attention_loops", "attention_plain", "attention_plain_backward"]
__all__ += ["attention_weights", "attention_with_logsumexp"]
__all__ += ["batch_norm2d", "batch_norm2d_backward", "batch_statistics"]
__all__ += ["dropout", "dropout_backward", "mean_squared_error", "numeric_gradient", "softmax_cross_entropy"]
__all__ += ["LSTM_FORMS", "LSTMGates", "LSTMWeights", "lstm", "lstm_backward", "lstm_step", "lstm_step_backward"]
__all__ += ["lstm_with_gates"]
__all__ += ["amdahl_speedup", "bubble_sort", "merge", "merge_sort"]
__all__ += ["precision"]
