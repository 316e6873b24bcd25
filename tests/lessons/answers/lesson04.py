"""Wrong and imperfect answers to the exercises of lesson 04."""

import numpy as np

from unrolled import ops

from . import Mutant, folding

# numeric_gradient


def moved(x, index, by):
    x = x.copy()
    x[index] += by
    return x


def central(function, x, index, step):
    return (function(moved(x, index, step)) - function(moved(x, index, -step))) / (2 * step)


def numeric_in_place(function, x, step=1e-5):
    gradient = np.zeros(x.shape)
    for index in np.ndindex(x.shape):
        x[index] += step
        up = function(x)
        x[index] -= 2 * step
        gradient[index] = (up - function(x)) / (2 * step)
        x[index] += step
    return gradient


def numeric_flat(function, x, step=1e-5):
    return ops.numeric_gradient(function, x, step).ravel()


def numeric_as_float32(function, x, step=1e-5):
    return ops.numeric_gradient(function, x, step).astype(np.float32)


# affine_backward


def affine_items(*, x=None, weight=None, bias=None):
    """Some of the three gradients computed in another way, from (grad, x, weight)."""

    def variant(grad, **arrays):
        given = (grad, arrays["x"], arrays["weight"])
        right = ops.affine_backward(*given)
        return tuple(change(*given) if change else item for change, item in zip((x, weight, bias), right, strict=True))

    return variant


# softmax_cross_entropy


def by_one_hot(scores, labels):
    one_hot = np.eye(scores.shape[1], dtype=scores.dtype)[labels]
    p = ops.softmax(scores)
    return -(one_hot * np.log(p)).sum() / len(p), (p - one_hot) / len(p)


def changing_scores(scores, labels):
    scores -= scores.max(axis=1, keepdims=True)
    return ops.softmax_cross_entropy(scores, labels)


def loss_changed(change):
    def variant(scores, labels):
        loss, grad = ops.softmax_cross_entropy(scores, labels)
        return change(loss, grad, scores, labels)

    return variant


def softmax_along_the_batch(scores, labels):
    e = np.exp(scores - scores.max(axis=0))
    p = e / e.sum(axis=0)
    rows = np.arange(len(scores))
    loss = -np.log(p[rows, labels]).mean()
    p[rows, labels] -= 1
    return loss, p / len(scores)


MUTANTS = {
    "numeric_gradient": [
        Mutant(numeric_in_place, "changed its input x"),
        Mutant(numeric_flat, "shape (6,), expected (2, 3)"),
        Mutant(numeric_as_float32, "dtype is float32, expected float64"),
    ],
    "affine_backward": [
        Mutant(affine_items(x=lambda g, x, w: g @ w.T), "weight is the wrong way round"),
        Mutant(affine_items(weight=lambda g, x, w: x.T @ g), "grad_weight is transposed"),
        Mutant(lambda **given: ops.affine_backward(**given)[0], "return grad_x, grad_weight, grad_bias"),
    ],
    "softmax_cross_entropy": [
        Mutant(changing_scores, "changed its input scores"),
        Mutant(softmax_along_the_batch, "loss: got"),
        Mutant(loss_changed(lambda loss, grad, s, t: loss), "return loss, grad"),
    ],
    "col2im": [
        Mutant(folding.col2im_overwriting, "values are overwritten where windows overlap"),
        Mutant(folding.col2im_not_swapped, "two axes exchanged"),
        Mutant(folding.col2im_in_float64, "dtype is float64, expected float32"),
    ],
    "conv2d_backward": [
        Mutant(lambda **given: (ops.conv2d_backward(**given)[0], None, None), "grad_weight: you return None for it"),
        Mutant(folding.convolution_without_stride, "ValueError"),
        Mutant(folding.convolution_with_options_forgotten_on_the_way_back, "these columns belong to other windows"),
    ],
    "max_pool2d_backward": [
        Mutant(folding.pooling_without_padding, "ValueError"),
        Mutant(folding.pooling_without_options, "pass stride and padding on"),
        Mutant(folding.pooling_into_the_size_of_grad, "size is x.shape[2:]"),
    ],
}

HONEST = {"col2im": [folding.col2im_image_by_image, folding.col2im_by_bincount, folding.col2im_by_way_of_float64]}

LOOP = {"col2im": folding.col2im_window_by_window}
