"""Wrong and imperfect answers to the exercises of lesson 04."""

from operator import itemgetter

import numpy as np

from unrolled import ops

from . import Mutant, result_of, solution

# softmax_cross_entropy


def softmax_along_the_batch(scores, labels):
    e = np.exp(scores - scores.max(axis=0))
    p = e / e.sum(axis=0)
    rows = np.arange(len(scores))
    loss = -np.log(p[rows, labels]).mean()
    p[rows, labels] -= 1
    return loss, p / len(scores)


# col2im


def col2im_image_by_image(columns, x_shape, kernel_size, stride=1, padding=0):
    """Slices, but for each image and channel by itself."""
    (n, c, h, w), (kh, kw) = x_shape, kernel_size
    oh, ow = ops.conv2d_output_size((h, w), kernel_size, stride, padding)
    x = np.zeros((n, c, h + 2 * padding, w + 2 * padding), columns.dtype)
    places = columns.reshape(c, kh, kw, n, oh, ow)
    for image in range(n):
        for channel in range(c):
            for i in range(kh):
                for j in range(kw):
                    x[image, channel, i : i + stride * oh : stride, j : j + stride * ow : stride] += places[
                        channel, i, j, image
                    ]
    return x[:, :, padding : padding + h, padding : padding + w]


def col2im_by_bincount(columns, x_shape, kernel_size, stride=1, padding=0):
    """im2col of the pixels' numbers says where each value belongs; by way of float64."""
    pixels = np.arange(1, np.prod(x_shape) + 1).reshape(x_shape)
    places = ops.im2col(pixels, kernel_size, stride, padding)
    sums = np.bincount(places.ravel(), columns.ravel(), pixels.size + 1)
    return sums[1:].reshape(x_shape).astype(columns.dtype)


def col2im_window_by_window(columns, x_shape, kernel_size, stride=1, padding=0):
    """The loop that the speed part must not pass."""
    (n, c, h, w), (kh, kw) = x_shape, kernel_size
    oh, ow = ops.conv2d_output_size((h, w), kernel_size, stride, padding)
    x = np.zeros((n, c, h + 2 * padding, w + 2 * padding), columns.dtype)
    for at, (image, row, column) in enumerate(np.ndindex(n, oh, ow)):
        top, left = row * stride, column * stride
        x[image, :, top : top + kh, left : left + kw] += columns[:, at].reshape(c, kh, kw)
    return x[:, :, padding : padding + h, padding : padding + w]


# conv2d_backward


def convolution_with_options_forgotten_on_the_way_back(grad, x, weight, stride=1, padding=0):
    rows = grad.swapaxes(0, 1).reshape(len(weight), -1)
    _, grad_weight, grad_bias = ops.conv2d_backward(grad, x, weight, stride, padding)
    grad_x = ops.col2im(weight.reshape(len(weight), -1).T @ rows, x.shape, weight.shape[2:])
    return grad_x, grad_weight, grad_bias


# max_pool2d_backward


def pooling_without_options(grad, x, kernel_size, stride=None, padding=0):
    return ops.max_unpool2d(grad, ops.max_pool2d_indices(x, kernel_size), x.shape[2:])


def pooling_into_the_size_of_grad(grad, x, kernel_size, stride=None, padding=0):
    return ops.max_unpool2d(grad, ops.max_pool2d_indices(x, kernel_size, stride, padding), grad.shape[2:])


MUTANTS = {
    "numeric_gradient": [
        Mutant(result_of("numeric_gradient", np.ravel), "shape (6,), expected (2, 3)"),
        Mutant(result_of("numeric_gradient", np.float32), "dtype is float32, expected float64"),
    ],
    "affine_backward": [
        Mutant(result_of("affine_backward", itemgetter(0)), "return grad_x, grad_weight, grad_bias"),
    ],
    "softmax_cross_entropy": [
        Mutant(softmax_along_the_batch, "loss: got"),
        Mutant(result_of("softmax_cross_entropy", itemgetter(0)), "return loss, grad"),
    ],
    "col2im": [
        Mutant(solution("04_backprop", "col2im", ("j].swapaxes(0, 1)", "j]")), "two axes exchanged"),
    ],
    "conv2d_backward": [
        Mutant(result_of("conv2d_backward", lambda grads: (grads[0], None, None)), "you return None for it"),
        Mutant(lambda **given: ops.conv2d_backward(**given | {"stride": 1}), "ValueError"),
        Mutant(convolution_with_options_forgotten_on_the_way_back, "these columns belong to other windows"),
    ],
    "max_pool2d_backward": [
        Mutant(lambda **given: ops.max_pool2d_backward(**given | {"padding": 0}), "ValueError"),
        Mutant(pooling_without_options, "pass stride and padding on"),
        Mutant(pooling_into_the_size_of_grad, "size is x.shape[2:]"),
    ],
}

HONEST = {"col2im": [col2im_image_by_image, col2im_by_bincount]}

LOOP = {"col2im": col2im_window_by_window}
