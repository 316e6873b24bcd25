"""Lesson 04: in what a student of the sample class differs from the solution, a class a student."""

import numpy as np

from unrolled import ops


class slow:
    """Right, and a loop over windows inside that over places in the window."""

    col2im = {
        "x[:, :, rows, places] += columns[:, i, j].swapaxes(0, 1)": (
            "for row, place in np.ndindex(oh, ow):\n"
            "                x[:, :, i + stride * row, j + stride * place] += columns[:, i, j, :, row, place].T"
        )
    }


class off_by_one:
    """A mean over one sample less, and a loop that leaves out the last row of windows."""

    softmax_cross_entropy = {
        ".mean()": ".sum() / max(len(scores) - 1, 1)",
        "/ len(scores)": "/ max(len(scores) - 1, 1)",
    }
    col2im = {"stride * oh": "stride * (oh - 1)", "columns[:, i, j]": "columns[:, i, j, :, :-1]"}


class another_way:
    """Right, by other ways: unit vectors, sums over named axes, log of sums, sums at indices."""

    def numeric_gradient(function, x, step=1e-5):
        flat = np.asarray(x, dtype=np.float64).ravel()
        shape = np.shape(x)
        slopes = [
            (function((flat + way).reshape(shape)) - function((flat - way).reshape(shape))) / (2 * step)
            for way in step * np.eye(flat.size)
        ]
        return np.array(slopes).reshape(shape)

    def affine_backward(grad, x, weight):
        return (np.einsum("nm,md->nd", grad, weight), np.einsum("nm,nd->md", grad, x), np.einsum("nm->m", grad))

    def softmax_cross_entropy(scores, labels):
        log_sums = np.logaddexp.reduce(scores, axis=1, keepdims=True)
        one_hot = np.eye(scores.shape[1], dtype=scores.dtype)[labels]
        chosen = np.take_along_axis(scores, labels[:, None], axis=1)
        return (log_sums - chosen).mean(), (np.exp(scores - log_sums) - one_hot) / len(scores)

    def conv2d_backward(grad, x, weight, stride=1, padding=0):
        kernel_size = weight.shape[2:]
        padded = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
        windows = np.lib.stride_tricks.sliding_window_view(padded, kernel_size, axis=(2, 3))[:, :, ::stride, ::stride]
        grad_weight = np.tensordot(grad, windows, axes=([0, 2, 3], [0, 2, 3]))
        grad_columns = np.tensordot(weight, grad, axes=([0], [1]))  # (C, KH, KW, N, OH, OW)
        rows = weight[0].size
        grad_x = ops.col2im(grad_columns.reshape(rows, -1), x.shape, kernel_size, stride, padding)
        return grad_x, grad_weight, grad.sum(axis=(0, 2, 3))

    def max_pool2d_backward(grad, x, kernel_size, stride=None, padding=0):
        indices = ops.max_pool2d_indices(x, kernel_size, stride, padding)
        back = np.zeros((*x.shape[:2], x.shape[2] * x.shape[3]), x.dtype)
        for n, c in np.ndindex(x.shape[:2]):
            np.add.at(back[n, c], indices[n, c].ravel(), grad[n, c].ravel())
        return back.reshape(x.shape)
