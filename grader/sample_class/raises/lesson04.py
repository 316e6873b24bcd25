"""Functions that raise: an axis and a name that do not exist."""

from unrolled import ops


def affine_backward(grad, x, weight):
    return grad @ weight, grad.T @ x, grad.sum(axis=2)


def conv2d_backward(grad, x, weight, stride=1, padding=0):
    rows = grad.swapaxes(0, 1).reshape(len(weight), -1)
    columns = ops.im2col(x, weight.shape[2:], stride, padding)
    grad_weight = (rows @ columns.T).reshape(weight.shape)
    grad_x = ops.col2im(grad_columns, x.shape, weight.shape[2:], stride, padding)  # noqa: F821  the mistake
    return grad_x, grad_weight, rows.sum(axis=1)
