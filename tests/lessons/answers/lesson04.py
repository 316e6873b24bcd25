"""Wrong and imperfect answers to the exercises of lesson 04."""

import numpy as np

from unrolled import ops

from . import Mutant, folding

# numeric_gradient


def numeric(slope, dtype=np.float64):
    """A gradient made value by value: slope(function, x, index, step)."""

    def variant(function, x, step=1e-5):
        x = np.array(x, dtype=dtype)
        gradient = np.zeros(x.shape)
        for index in np.ndindex(x.shape):
            gradient[index] = slope(function, x, index, step)
        return gradient

    return variant


def moved(x, index, by):
    x = x.copy()
    x[index] += by
    return x


def central(function, x, index, step):
    return (function(moved(x, index, step)) - function(moved(x, index, -step))) / (2 * step)


def to_one_side(function, x, index, step):
    return (function(moved(x, index, step)) - function(x)) / step


def to_the_other_side(function, x, index, step):
    return (function(x) - function(moved(x, index, -step))) / step


def not_halved(function, x, index, step):
    return (function(moved(x, index, step)) - function(moved(x, index, -step))) / step


def without_brackets(function, x, index, step):
    return (function(moved(x, index, step)) - function(moved(x, index, -step))) / 2 * step


def halved(function, x, index, step):
    return (function(moved(x, index, step)) - function(moved(x, index, -step))) / 2


def not_divided(function, x, index, step):
    return function(moved(x, index, step)) - function(moved(x, index, -step))


def wrong_way_round(function, x, index, step):
    return (function(moved(x, index, -step)) - function(moved(x, index, step))) / (2 * step)


def all_moved(function, x, index, step):
    return (function(x + step) - function(x - step)) / (2 * step)


def never_put_back(function, x, index, step):
    x[index] += step
    up = function(x)
    x[index] -= 2 * step
    return (up - function(x)) / (2 * step)


def back_at_x(function, x, index, step):
    return to_one_side(function, x, index, step) / 2


def numeric_in_place(function, x, step=1e-5):
    gradient = np.zeros(x.shape)
    for index in np.ndindex(x.shape):
        x[index] += step
        up = function(x)
        x[index] -= 2 * step
        gradient[index] = (up - function(x)) / (2 * step)
        x[index] += step
    return gradient


def numeric_in_a_copy_as_x_is(function, x, step=1e-5):
    x = x.astype(np.result_type(x, np.float32))
    return numeric_in_place(function, x, step)


def numeric_in_copies_as_x_is(function, x, step=1e-5):
    x = x.astype(np.result_type(x, np.float32))
    gradient = np.zeros(x.shape)
    for index in np.ndindex(x.shape):
        gradient[index] = central(function, x, index, step)
    return gradient


def numeric_row_by_row(function, x, step=1e-5):
    x = np.array(x, dtype=float)
    gradient = np.zeros(x.shape)
    for row in range(len(x)):
        gradient[row] = central(function, x, row, step)
    return gradient


def numeric_of_one_array(function, x, index, step):
    up = down = x.copy()
    up[index] += step
    down[index] -= step
    return (function(up) - function(down)) / (2 * step)


def numeric_flat(function, x, step=1e-5):
    return ops.numeric_gradient(function, x, step).ravel()


def numeric_as_float32(function, x, step=1e-5):
    return ops.numeric_gradient(function, x, step).astype(np.float32)


def numeric_of_the_first(function, x, step=1e-5):
    gradient = np.zeros(x.shape)
    for index in np.ndindex(x.shape):
        gradient[index] = central(function, np.array(x, float), index, step)
        break
    return gradient


# affine_backward


def affine_items(*, x=None, weight=None, bias=None):
    """Some of the three gradients computed in another way, from (grad, x, weight)."""

    def variant(grad, **arrays):
        given = (grad, arrays["x"], arrays["weight"])
        right = ops.affine_backward(*given)
        return tuple(change(*given) if change else item for change, item in zip((x, weight, bias), right, strict=True))

    return variant


# softmax_cross_entropy


def by_probabilities(scores, labels):
    p = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    loss = -np.log(p[np.arange(len(scores)), labels]).mean()
    p[np.arange(len(scores)), labels] -= 1
    return loss, p / len(scores)


def by_shifted_probabilities(scores, labels):
    rows = np.arange(len(scores))
    p = np.exp(scores - scores.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    loss = -np.log(p[rows, labels]).mean()
    p[rows, labels] -= 1
    return loss, p / len(scores)


def by_one_hot(scores, labels):
    one_hot = np.eye(scores.shape[1], dtype=scores.dtype)[labels]
    p = ops.softmax(scores)
    return -(one_hot * np.log(p)).sum() / len(p), (p - one_hot) / len(p)


def by_one_hot_of_float64(scores, labels):
    loss, _ = ops.softmax_cross_entropy(scores, labels)
    one_hot = np.zeros(scores.shape)
    one_hot[np.arange(len(labels)), labels] = 1
    return loss, (ops.softmax(scores) - one_hot) / len(labels)


def with_one_maximum(scores, labels):
    return by_shifted_probabilities_of(scores - scores.max(), labels)


def logarithm_of_sums_with_one_maximum(scores, labels):
    rows, shifted = np.arange(len(scores)), scores - scores.max()
    exponentials = np.exp(shifted)
    sums = exponentials.sum(axis=1)
    loss = (np.log(sums) - shifted[rows, labels]).mean()
    grad = exponentials / sums[:, None]
    grad[rows, labels] -= 1
    return loss, grad / len(scores)


def by_shifted_probabilities_of(shifted, labels):
    rows, exponentials = np.arange(len(shifted)), np.exp(shifted)
    sums = exponentials.sum(axis=1)
    losses = -np.log(exponentials[rows, labels] / sums)
    grad = exponentials / sums[:, None]
    grad[rows, labels] -= 1
    return losses.mean(), grad / len(shifted)


def with_a_small_number(scores, labels):
    """The usual way around log(0)."""
    p = ops.softmax(scores)
    loss = -np.log(p[np.arange(len(p)), labels] + 1e-7).mean()
    return loss, ops.softmax_cross_entropy(scores, labels)[1]


def changing_scores(scores, labels):
    scores -= scores.max(axis=1, keepdims=True)
    return ops.softmax_cross_entropy(scores, labels)


def softmax_of_all(scores, labels):
    rows, shifted = np.arange(len(scores)), scores - scores.max(axis=1, keepdims=True)
    p = np.exp(shifted) / np.exp(shifted).sum()
    loss = (np.log(np.exp(shifted).sum()) - shifted[rows, labels]).mean()
    p[rows, labels] -= 1
    return loss, p / len(p)


def by_all_labels(scores, labels):
    shifted = scores - scores.max(axis=1, keepdims=True)
    loss = (np.log(np.exp(shifted).sum(axis=1)) - shifted[:, labels]).mean()
    return loss, ops.softmax_cross_entropy(scores, labels)[1]


def less_one_at(place):
    def variant(scores, labels):
        p = ops.softmax(scores)
        p[place(labels)] -= 1
        return ops.softmax_cross_entropy(scores, labels)[0], p / len(p)

    return variant


def minus_one_for_the_probability(scores, labels):
    p = ops.softmax(scores)
    p[np.arange(len(p)), labels] = -1
    return ops.softmax_cross_entropy(scores, labels)[0], p / len(p)


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
        Mutant(numeric(to_one_side), "step to both sides"),
        Mutant(numeric(to_the_other_side), "step to both sides"),
        Mutant(numeric(not_halved), "it is 2 * step"),
        Mutant(numeric(without_brackets), "write / (2 * step), with brackets"),
        Mutant(numeric(halved), "but the way is 2 * step"),
        Mutant(numeric(not_divided), "this is the difference alone"),
        Mutant(numeric(wrong_way_round), "the sign is turned"),
        Mutant(numeric(all_moved), "move one, and hold the others"),
        Mutant(numeric(never_put_back), "x is not back in its place"),
        Mutant(numeric(back_at_x), "your second point is x itself"),
        Mutant(numeric(central, np.float32), "convert x to float64 first"),
        Mutant(numeric_in_a_copy_as_x_is, "convert x to float64 first"),
        Mutant(numeric_in_copies_as_x_is, "convert x to float64 first"),
        Mutant(numeric(lambda f, x, i, step: central(f, x, i, 1e-2)), "your step is 0.01, whatever is asked"),
        Mutant(numeric(lambda f, x, i, step: central(f, x, i, 1e-5)), "your step is the same, whatever is asked"),
        Mutant(numeric(lambda f, x, i, step: central(f, x, i, 0.1)), "your step is 0.1, whatever is asked"),
        Mutant(numeric_row_by_row, "whole rows of x are moved at once"),
        Mutant(numeric(numeric_of_one_array), "up and down are the same point"),
        Mutant(numeric_in_place, "changed its input x"),
        Mutant(numeric_flat, "shape (6,), expected (2, 3)"),
        Mutant(numeric_as_float32, "dtype is float32, expected float64"),
        Mutant(numeric_of_the_first, "2 of 3 values differ"),
    ],
    "affine_backward": [
        Mutant(affine_items(x=lambda g, x, w: g @ w.T), "weight is the wrong way round"),
        Mutant(affine_items(weight=lambda g, x, w: x.T @ g), "grad_weight is transposed"),
        Mutant(affine_items(bias=lambda g, x, w: g.sum(axis=1)), "sum over the samples, axis 0"),
        Mutant(affine_items(bias=lambda g, x, w: g.sum()), "one number an output"),
        Mutant(affine_items(bias=lambda g, x, w: g.mean(axis=0)), "mean over the samples: add up"),
        Mutant(affine_items(bias=lambda g, x, w: g), "(N, M) must become (M,)"),
        Mutant(affine_items(bias=lambda g, x, w: g.sum(axis=0, keepdims=True)), "keepdims=True leaves an axis"),
        Mutant(affine_items(weight=lambda g, x, w: g.T @ x / len(x)), "grad_weight is divided by N"),
        Mutant(affine_items(bias=lambda g, x, w: -g.sum(axis=0)), "the sign of grad_bias is turned"),
        Mutant(
            lambda grad, x, weight: (grad @ weight, grad.T @ x / len(x), grad.mean(axis=0)), "are divided by N: add up"
        ),
        Mutant(lambda **given: ops.affine_backward(**given)[0], "return grad_x, grad_weight, grad_bias"),
        Mutant(lambda grad, x, weight: (grad.T @ x, grad @ weight, grad.sum(axis=0)), "the order is grad_x"),
    ],
    "softmax_cross_entropy": [
        Mutant(by_probabilities, "exp overflows"),
        Mutant(by_shifted_probabilities, "its logarithm -inf"),
        Mutant(by_one_hot, "0 * log(0) is NaN"),
        Mutant(with_one_maximum, "not of the whole array"),
        Mutant(logarithm_of_sums_with_one_maximum, "not of the whole array"),
        Mutant(with_a_small_number, "a small number inside the logarithm"),
        Mutant(softmax_of_all, "divide by the sum of each row"),
        Mutant(by_all_labels, "name the rows as well"),
        Mutant(less_one_at(lambda labels: (slice(None), labels)), "name the rows as well"),
        Mutant(less_one_at(lambda labels: labels), "a label is the second index"),
        Mutant(less_one_at(lambda labels: ...), "1 is subtracted from whole rows"),
        Mutant(minus_one_for_the_probability, "subtract 1 from it, -= 1"),
        Mutant(loss_changed(lambda loss, grad, s, t: (loss, grad / s.shape[1])), "is divided by N * M"),
        Mutant(loss_changed(lambda loss, grad, s, t: (np.full(len(s), loss), grad)), "loss: expected a number"),
        Mutant(
            lambda scores, labels: (
                -np.log(ops.softmax(scores)[np.arange(len(labels)), labels]),
                ops.softmax_cross_entropy(scores, labels)[1],
            ),
            "the loss is their mean",
        ),
        Mutant(changing_scores, "changed its input scores"),
        Mutant(by_one_hot_of_float64, "grad: the values are right, but dtype is float64, expected float32"),
        Mutant(softmax_along_the_batch, "loss: got"),
        Mutant(loss_changed(lambda loss, grad, s, t: (loss * len(s), grad)), "yours is the sum"),
        Mutant(loss_changed(lambda loss, grad, s, t: (loss * len(s), grad * len(s))), "divide both by N"),
        Mutant(loss_changed(lambda loss, grad, s, t: (loss, grad * len(s))), "the gradient is not divided by N"),
        Mutant(loss_changed(lambda loss, grad, s, t: (loss, -grad)), "probabilities minus one-hot"),
        Mutant(loss_changed(lambda loss, grad, s, t: (-loss, grad)), "the sign of the loss is turned"),
        Mutant(loss_changed(lambda loss, grad, s, t: (loss / np.log(2), grad)), "use the natural logarithm"),
        Mutant(loss_changed(lambda loss, grad, s, t: (loss / s.shape[1], grad)), "you divided by N * M"),
        Mutant(loss_changed(lambda loss, grad, s, t: (loss, ops.softmax(s))), "subtract 1 at the right class"),
        Mutant(loss_changed(lambda loss, grad, s, t: loss), "return loss, grad"),
    ],
    "col2im": [
        Mutant(folding.col2im_overwriting, "values are overwritten where windows overlap"),
        Mutant(folding.col2im_overwriting_slices, "values are overwritten where windows overlap"),
        Mutant(folding.col2im_with_its_padding, "the padding is still there"),
        Mutant(folding.col2im_cropped_by_minus_padding, "the slice padding : -padding is empty"),
        Mutant(folding.col2im_cropped_at_the_corner, "cropped at the wrong place"),
        Mutant(folding.col2im_averaging, "the mean over the windows"),
        Mutant(folding.col2im_without_stride, "the stride is missing"),
        Mutant(folding.col2im_reshaped_place_by_place, "mixes images and channels"),
        Mutant(folding.col2im_of_the_first_image, "the counter of columns goes on"),
        Mutant(folding.col2im_not_swapped, "two axes exchanged"),
        Mutant(folding.col2im_cropped_too_early, "crop with padding : padding + H"),
        Mutant(folding.col2im_images_first, "read as (N, C, KH, KW)"),
        Mutant(folding.col2im_channels_last, "read as (KH, KW, C)"),
        Mutant(folding.col2im_positions_by_column, "read as (N, OW, OH)"),
        Mutant(folding.col2im_in_float64, "dtype is float64, expected float32"),
    ],
    "conv2d_backward": [
        Mutant(folding.convolution_reshaped_at_once, "mixes images and filters"),
        Mutant(folding.convolution_mixed_but_for_the_bias, "mixes images and filters"),
        Mutant(lambda **given: (ops.conv2d_backward(**given)[0], None, None), "grad_weight: you return None for it"),
        Mutant(folding.convolution_with_all_axes_turned_around, "weight.T turns all four axes around"),
        Mutant(folding.convolution_with_rows(1, 2, 3, 0), "swapaxes(0, 1), and no more"),
        Mutant(folding.convolution_with_rows(3, 2, 1, 0), "swapaxes(0, 1), and no more"),
        Mutant(folding.convolution_with_torn_filters, "tears the filters apart"),
        Mutant(folding.convolution_items(bias=lambda r, g, *_: g.sum(axis=1).ravel()), "one number a filter"),
        Mutant(folding.convolution_with_products_reshaped, "a reshape does not turn it around"),
        Mutant(folding.convolution_items(x=folding.convolution_with_turned_kernel), "kernel turned by 180 degrees"),
        Mutant(folding.convolution_items(weight=lambda r, *_: r[:, :, ::-1, ::-1]), "grad_weight is turned"),
        Mutant(folding.convolution_items(weight=lambda r, *_: r.reshape(len(r), -1)), "grad_weight is a matrix still"),
        Mutant(
            folding.convolution_items(bias=lambda r, g, *_: g.mean(axis=(0, 2, 3))), "mean over images and positions"
        ),
        Mutant(folding.convolution_items(bias=lambda r, g, *_: g.sum(axis=0)), "summed over the images only"),
        Mutant(folding.convolution_items(bias=lambda r, g, *_: g.sum(axis=(2, 3))), "summed over the positions only"),
        Mutant(folding.convolution_items(bias=lambda r, g, *_: g.sum(axis=(1, 2, 3))), "one number a filter"),
        Mutant(folding.convolution_without_stride, "ValueError"),
        Mutant(folding.convolution_without_padding, "ValueError"),
        Mutant(folding.convolution_with_options_forgotten_on_the_way_back, "these columns belong to other windows"),
        Mutant(folding.convolution_divided, "are divided by N: add up"),
        Mutant(lambda **given: ops.conv2d_backward(**given)[:2], "expected 3 items, got 2"),
    ],
    "max_pool2d_backward": [
        Mutant(folding.pooling_of_maxima, "the maxima are put back"),
        Mutant(folding.pooling_by_windows(folding.to_all_ties), "every tied maximum gets the whole gradient"),
        Mutant(folding.pooling_by_windows(folding.shared_by_ties), "tied maxima share the gradient"),
        Mutant(folding.pooling_by_windows(folding.to_the_last), "yours takes the last"),
        Mutant(folding.pooling_by_windows(folding.to_every_pixel), "every pixel of a window gets the whole gradient"),
        Mutant(folding.pooling_by_windows(folding.spread_evenly), "as for average pooling"),
        Mutant(folding.pooling_overwriting, "they add up"),
        Mutant(folding.pooling_without_padding, "ValueError"),
        Mutant(folding.pooling_without_stride, "ValueError"),
        Mutant(folding.pooling_without_options, "pass stride and padding on"),
        Mutant(folding.pooling_into_the_size_of_grad, "size is x.shape[2:]"),
    ],
}

HONEST = {"col2im": [folding.col2im_image_by_image, folding.col2im_by_bincount, folding.col2im_by_way_of_float64]}

LOOP = {"col2im": folding.col2im_window_by_window}
