"""Lesson 04: the functions in which a student of the sample class differs from the solution, a class a student."""

import numpy as np

from unrolled import ops


class slow:
    """Right, and a loop over windows where places inside the window were asked for."""

    def col2im(columns, x_shape, kernel_size, stride=1, padding=0):
        (n, c, h, w), (kh, kw) = x_shape, kernel_size
        oh, ow = ops.conv2d_output_size((h, w), kernel_size, stride, padding)
        x = np.zeros((n, c, h + 2 * padding, w + 2 * padding), dtype=columns.dtype)
        for at, (image, row, column) in enumerate(np.ndindex(n, oh, ow)):
            top, left = row * stride, column * stride
            x[image, :, top : top + kh, left : left + kw] += columns[:, at].reshape(c, kh, kw)
        return x[:, :, padding : padding + h, padding : padding + w]


class off_by_one:
    """A mean over one sample less, and a loop that leaves out the last row of windows."""

    def softmax_cross_entropy(scores, labels):
        rows, count = np.arange(len(scores)), max(len(scores) - 1, 1)
        shifted = scores - scores.max(axis=1, keepdims=True)
        exponentials = np.exp(shifted)
        sums = exponentials.sum(axis=1)
        grad = exponentials / sums[:, None]
        grad[rows, labels] -= 1
        return (np.log(sums) - shifted[rows, labels]).sum() / count, grad / count

    def col2im(columns, x_shape, kernel_size, stride=1, padding=0):
        (n, c, h, w), (kh, kw) = x_shape, kernel_size
        oh, ow = ops.conv2d_output_size((h, w), kernel_size, stride, padding)
        columns = columns.reshape(c, kh, kw, n, oh, ow)
        x = np.zeros((n, c, h + 2 * padding, w + 2 * padding), dtype=columns.dtype)
        for image in range(n):
            for row in range(oh - 1):
                for column in range(ow):
                    top, left = row * stride, column * stride
                    x[image, :, top : top + kh, left : left + kw] += columns[:, :, :, image, row, column]
        return x[:, :, padding : padding + h, padding : padding + w]


class wrong_dtype:
    """float64 where float32 came in, because np.zeros says so; and float32 where small differences want float64."""

    def numeric_gradient(function, x, step=1e-5):
        x = np.array(x, dtype=np.float32)
        gradient = np.zeros(x.shape)
        for index in np.ndindex(x.shape):
            up, down = x.copy(), x.copy()
            up[index] += step
            down[index] -= step
            gradient[index] = (function(up) - function(down)) / (2 * step)
        return gradient

    def softmax_cross_entropy(scores, labels):
        one_hot = np.zeros(scores.shape)
        one_hot[np.arange(len(labels)), labels] = 1
        loss = -np.log(ops.softmax(scores))[np.arange(len(labels)), labels].mean()
        return loss, (ops.softmax(scores) - one_hot) / len(scores)

    def col2im(columns, x_shape, kernel_size, stride=1, padding=0):
        (n, c, h, w), (kh, kw) = x_shape, kernel_size
        oh, ow = ops.conv2d_output_size((h, w), kernel_size, stride, padding)
        columns = columns.reshape(c, kh, kw, n, oh, ow)
        x = np.zeros((n, c, h + 2 * padding, w + 2 * padding))
        for i in range(kh):
            for j in range(kw):
                values = columns[:, i, j].swapaxes(0, 1)
                x[:, :, i : i + stride * oh : stride, j : j + stride * ow : stride] += values
        return x[:, :, padding : padding + h, padding : padding + w]


class raises:
    """Functions that raise: an axis and a name that do not exist."""

    def affine_backward(grad, x, weight):
        return grad @ weight, grad.T @ x, grad.sum(axis=2)

    def conv2d_backward(grad, x, weight, stride=1, padding=0):
        rows = grad.swapaxes(0, 1).reshape(len(weight), -1)
        columns = ops.im2col(x, weight.shape[2:], stride, padding)
        grad_weight = (rows @ columns.T).reshape(weight.shape)
        grad_x = ops.col2im(grad_columns, x.shape, weight.shape[2:], stride, padding)  # noqa: F821  the mistake
        return grad_x, grad_weight, rows.sum(axis=1)


class endless:
    """A loop that never comes to the last window."""

    def col2im(columns, x_shape, kernel_size, stride=1, padding=0):
        (n, c, h, w), (kh, kw) = x_shape, kernel_size
        x = np.zeros((n, c, h + 2 * padding, w + 2 * padding), dtype=columns.dtype)
        top = left = at = 0
        while top + kh <= h + 2 * padding:
            x[0, :, top : top + kh, left : left + kw] += columns[:, at].reshape(c, kh, kw)
        return x[:, :, padding : padding + h, padding : padding + w]


class another_way:
    """Right, by other ways: unit vectors, sums over named axes, log of sums, counted pixels, masks."""

    def numeric_gradient(function, x, step=1e-5):
        flat = np.asarray(x, dtype=np.float64).ravel()
        shape = np.shape(x)
        slopes = [
            (function((flat + way).reshape(shape)) - function((flat - way).reshape(shape))) / (2 * step)
            for way in step * np.eye(flat.size)
        ]
        return np.array(slopes).reshape(shape)

    def affine_backward(grad, x, weight):
        return (
            np.einsum("nm,md->nd", grad, weight),
            np.einsum("nm,nd->md", grad, x),
            np.einsum("nm->m", grad),
        )

    def softmax_cross_entropy(scores, labels):
        log_sums = np.logaddexp.reduce(scores, axis=1, keepdims=True)
        one_hot = np.eye(scores.shape[1], dtype=scores.dtype)[labels]
        chosen = np.take_along_axis(scores, labels[:, None], axis=1)
        return (log_sums - chosen).mean(), (np.exp(scores - log_sums) - one_hot) / len(scores)

    def col2im(columns, x_shape, kernel_size, stride=1, padding=0):
        pixels = np.arange(1, np.prod(x_shape) + 1).reshape(x_shape)  # 0 is for the padding
        places = ops.im2col(pixels, kernel_size, stride, padding)
        sums = np.bincount(places.ravel(), weights=columns.ravel(), minlength=pixels.size + 1)
        return sums[1:].reshape(x_shape).astype(columns.dtype)

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
