"""Wrong and imperfect answers to the variants of lesson 04."""

import numpy as np

from unrolled import ops

from . import Mutant

# numeric_gradient_directional


def slope(of, dtype=np.float64):
    """A slope made by `of(function, x, direction, step)`, both arrays copied into this dtype."""

    def variant(function, x, direction, step=1e-5):
        return of(function, np.array(x, dtype=dtype), np.array(direction, dtype=dtype), step)

    return variant


def as_it_comes(function, x, direction, step=1e-5):
    return central(function, x, direction, step)


def central(function, x, direction, step):
    return (function(x + step * direction) - function(x - step * direction)) / (2 * step)


def of_one_length(function, x, direction, step):
    return central(function, x, direction / np.linalg.norm(direction), step)


def by_the_whole_gradient(function, x, direction, step):
    """Right, and the very thing that the exercise saves."""
    total = 0.0
    for index in np.ndindex(x.shape):
        axis = np.zeros(x.shape)
        axis[index] = 1
        total += central(function, x, axis, step) * direction[index]
    return total


def in_small_floats(function, x, direction, step):
    way = np.float32(step) * direction
    return (function(x + way) - function(x - way)) / (2 * step)


def slope_in_place(function, x, direction, step=1e-5):
    x += step * direction
    ahead = function(x)
    x -= 2 * step * direction
    return (ahead - function(x)) / (2 * step)


# affine_backward_in_out


def in_out(grad, x, weight):
    return grad @ weight.T, x.T @ grad, grad.sum(axis=0)


def in_out_items(*, x=None, weight=None, bias=None):
    """Some of the three gradients computed in another way, from (grad, x, weight)."""

    def variant(grad, **arrays):
        given = (grad, arrays["x"], arrays["weight"])
        changes = zip((x, weight, bias), in_out(*given), strict=True)
        return tuple(change(*given) if change else item for change, item in changes)

    return variant


# softmax_cross_entropy_smoothing


def smoothed_targets(scores, labels, smoothing):
    targets = np.full(scores.shape, smoothing / scores.shape[1], scores.dtype)
    targets[np.arange(len(labels)), labels] += 1 - smoothing
    return targets


def smoothed(scores, labels, smoothing=0.1, targets_of=smoothed_targets):
    """Right, from targets written out."""
    targets = targets_of(scores, labels, smoothing)
    shifted = scores - scores.max(axis=1, keepdims=True)
    sums = np.exp(shifted).sum(axis=1, keepdims=True)
    loss = (targets * (np.log(sums) - shifted)).sum(axis=1).mean()
    return loss, (np.exp(shifted) / sums - targets) / len(scores)


def with_targets(targets_of):
    def variant(scores, labels, smoothing=0.1):
        return smoothed(scores, labels, smoothing, targets_of)

    return variant


def shared_by_the_others(scores, labels, smoothing):
    targets = np.full(scores.shape, smoothing / (scores.shape[1] - 1), scores.dtype)
    targets[np.arange(len(labels)), labels] = 1 - smoothing
    return targets


def without_its_own_share(scores, labels, smoothing):
    targets = np.full(scores.shape, smoothing / scores.shape[1], scores.dtype)
    targets[np.arange(len(labels)), labels] = 1 - smoothing
    return targets


def smoothed_by_probabilities(scores, labels, smoothing=0.1):
    p, targets = ops.softmax(scores), smoothed_targets(scores, labels, smoothing)
    return -(targets * np.log(p)).sum(axis=1).mean(), (p - targets) / len(p)


def smoothed_and_overflowing(scores, labels, smoothing=0.1):
    p = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    targets = smoothed_targets(scores, labels, smoothing)
    return -(targets * np.log(p)).sum(axis=1).mean(), (p - targets) / len(p)


def smoothed_changed(change):
    def variant(scores, labels, smoothing=0.1):
        return change(*smoothed(scores, labels, smoothing), scores, labels)

    return variant


def smoothed_in_float64(scores, labels, smoothing=0.1):
    loss, grad = smoothed(scores, labels, smoothing)
    return loss, grad.astype(float)


def smoothed_in_place(scores, labels, smoothing=0.1):
    scores -= scores.max(axis=1, keepdims=True)
    return smoothed(scores, labels, smoothing)


# col2im_dilated


def dilated_size(x_shape, kernel_size, stride, padding, dilation):
    spans = [dilation * (k - 1) + 1 for k in kernel_size]
    return ops.conv2d_output_size(x_shape[2:], spans, stride, padding)


def dilated(columns, x_shape, kernel_size, stride=1, padding=0, dilation=1, **change):
    """Right, or with one thing changed."""
    (n, c, h, w), (kh, kw) = x_shape, kernel_size
    oh, ow = dilated_size(x_shape, kernel_size, stride, padding, dilation)
    x = np.zeros((n, c, h + 2 * padding, w + 2 * padding), change.get("dtype", columns.dtype))
    places = columns.reshape(c, kh, kw, n, oh, ow)
    apart = change.get("apart", lambda s, d: s)(stride, dilation)
    offset = change.get("offset", lambda i, s, d: i * d)
    for i in range(kh):
        for j in range(kw):
            top, left = offset(i, stride, dilation), offset(j, stride, dilation)
            grid = x[:, :, top : top + apart * oh : apart, left : left + apart * ow : apart]
            if change.get("overwrite"):
                grid[...] = places[:, i, j].swapaxes(0, 1)
            else:
                grid += places[:, i, j].swapaxes(0, 1)
    start = change.get("start", lambda p: p)(padding)
    return x[:, :, start : start + h, start : start + w] if change.get("crop", True) else x


def dilated_with(**change):
    def variant(columns, x_shape, kernel_size, stride=1, padding=0, dilation=1):
        return dilated(columns, x_shape, kernel_size, stride, padding, dilation, **change)

    return variant


def dilated_rows_mixed(columns, x_shape, kernel_size, stride=1, padding=0, dilation=1):
    c, (kh, kw) = x_shape[1], kernel_size
    mixed = columns.reshape(kh, kw, c, -1).transpose(2, 0, 1, 3).reshape(columns.shape)
    return dilated(mixed, x_shape, kernel_size, stride, padding, dilation)


def dilated_images_first(columns, x_shape, kernel_size, stride=1, padding=0, dilation=1):
    (n, c, _, _), (kh, kw) = x_shape, kernel_size
    oh, ow = dilated_size(x_shape, kernel_size, stride, padding, dilation)
    mixed = columns.reshape(n, c, kh, kw, oh, ow).transpose(1, 2, 3, 0, 4, 5)
    return dilated(mixed.reshape(columns.shape), x_shape, kernel_size, stride, padding, dilation)


def dilated_image_by_image(columns, x_shape, kernel_size, stride=1, padding=0, dilation=1):
    """Honest: slices, but for each image and channel by itself."""
    (n, c, h, w), (kh, kw) = x_shape, kernel_size
    oh, ow = dilated_size(x_shape, kernel_size, stride, padding, dilation)
    x = np.zeros((n, c, h + 2 * padding, w + 2 * padding), columns.dtype)
    places = columns.reshape(c, kh, kw, n, oh, ow)
    for image, channel, i, j in np.ndindex(n, c, kh, kw):
        top, left = i * dilation, j * dilation
        grid = x[image, channel, top : top + stride * oh : stride, left : left + stride * ow : stride]
        grid += places[channel, i, j, image]
    return x[:, :, padding : padding + h, padding : padding + w]


def dilated_by_way_of_float64(columns, x_shape, kernel_size, stride=1, padding=0, dilation=1):
    """Honest: twice the memory, and a copy at the end."""
    x = dilated(columns.astype(float), x_shape, kernel_size, stride, padding, dilation)
    return x.astype(columns.dtype)


def dilated_by_an_index_for_each_value(columns, x_shape, kernel_size, stride=1, padding=0, dilation=1):
    """Honest: says of every value where it belongs, and lets bincount add up, by way of float64."""
    (n, c, h, w), (kh, kw) = x_shape, kernel_size
    oh, ow = dilated_size(x_shape, kernel_size, stride, padding, dilation)
    tall, wide = h + 2 * padding, w + 2 * padding
    rows = np.arange(kh)[:, None, None, None] * dilation + np.arange(oh)[:, None] * stride
    places = np.arange(kw)[:, None, None] * dilation + np.arange(ow) * stride
    within = (rows * wide + places).reshape(1, kh, kw, 1, oh, ow)
    sheets = (np.arange(n)[None, :] * c + np.arange(c)[:, None]).reshape(c, 1, 1, n, 1, 1)
    sums = np.bincount((sheets * tall * wide + within).ravel(), columns.ravel(), n * c * tall * wide)
    x = sums.reshape(n, c, tall, wide).astype(columns.dtype)
    return x[:, :, padding : padding + h, padding : padding + w]


def dilated_window_by_window(columns, x_shape, kernel_size, stride=1, padding=0, dilation=1):
    """The loop that the speed part must not pass."""
    (n, c, h, w), (kh, kw) = x_shape, kernel_size
    oh, ow = dilated_size(x_shape, kernel_size, stride, padding, dilation)
    x = np.zeros((n, c, h + 2 * padding, w + 2 * padding), columns.dtype)
    for at, (image, row, column) in enumerate(np.ndindex(n, oh, ow)):
        top, left = row * stride, column * stride
        pixels = x[image, :, top : top + dilation * kh : dilation, left : left + dilation * kw : dilation]
        pixels += columns[:, at].reshape(c, kh, kw)
    return x[:, :, padding : padding + h, padding : padding + w]


# conv2d_backward_nhwc


def nhwc(grad, x, weight, stride=1, padding=0, overwrite=False):
    """Right, place by place in the kernel; or with values overwritten."""
    (_, h, w, c), (kh, kw, _, o), (oh, ow) = x.shape, weight.shape, grad.shape[1:3]
    padded = np.pad(x, ((0, 0), (padding, padding), (padding, padding), (0, 0)))
    grad_padded, grad_weight = np.zeros_like(padded), np.empty_like(weight)
    for i in range(kh):
        for j in range(kw):
            place = slice(None), slice(i, i + stride * oh, stride), slice(j, j + stride * ow, stride)
            grad_weight[i, j] = padded[place].reshape(-1, c).T @ grad.reshape(-1, o)
            share = grad @ weight[i, j].T
            grad_padded[place] = share if overwrite else grad_padded[place] + share
    grad_x = grad_padded[:, padding : padding + h, padding : padding + w]
    return grad_x, grad_weight, grad.sum(axis=(0, 1, 2))


def nhwc_items(*, x=None, weight=None, bias=None):
    """Some of the three gradients computed in another way: change(right, grad, x, weight, stride, padding)."""

    def variant(grad, stride=1, padding=0, **arrays):
        given = (grad, arrays["x"], arrays["weight"], stride, padding)
        changes = zip((x, weight, bias), nhwc(*given), strict=True)
        return tuple(change(item, *given) if change else item for change, item in changes)

    return variant


def with_the_border(right, grad, x, weight, stride, padding):
    return nhwc(grad, np.pad(x, ((0, 0), (padding, padding), (padding, padding), (0, 0))), weight, stride)[0]


def nhwc_reshaped(grad, x, weight, stride=1, padding=0):
    (n, h, w, c), (kh, kw, _, o) = x.shape, weight.shape
    first = grad.reshape(n, o, *grad.shape[1:3]), x.reshape(n, c, h, w), weight.reshape(o, c, kh, kw)
    grad_x, grad_weight, grad_bias = ops.conv2d_backward(*first, stride, padding)
    return grad_x.reshape(x.shape), grad_weight.reshape(weight.shape), grad_bias


def nhwc_left_in_nchw(grad, x, weight, stride=1, padding=0):
    first = grad.transpose(0, 3, 1, 2), x.transpose(0, 3, 1, 2), weight.transpose(3, 2, 0, 1)
    return ops.conv2d_backward(*first, stride, padding)


def nhwc_divided(grad, x, weight, stride=1, padding=0):
    grad_x, grad_weight, grad_bias = nhwc(grad, x, weight, stride, padding)
    return grad_x, grad_weight / len(x), grad_bias / len(x)


MUTANTS = {
    "numeric_gradient_directional": [
        Mutant(slope(lambda f, x, d, step: (f(x + step * d) - f(x)) / step), "the step goes to one side only"),
        Mutant(slope(lambda f, x, d, step: (f(x) - f(x - step * d)) / step), "the step goes to one side only"),
        Mutant(slope(lambda f, x, d, step: 2 * central(f, x, d, step)), "it is 2 * step"),
        Mutant(slope(lambda f, x, d, step: -central(f, x, d, step)), "the sign is turned"),
        Mutant(slope(of_one_length), "you gave the direction the length 1"),
        Mutant(slope(lambda f, x, d, step: central(f, x, np.ones(x.shape), step)), "moves by the same step"),
        Mutant(slope(lambda f, x, d, step: central(f, x, d, 1e-5)), "your step is 1e-05, whatever is asked"),
        Mutant(slope(lambda f, x, d, step: central(f, x, d, 0.01)), "your step is 0.01, whatever is asked"),
        Mutant(slope(in_small_floats, np.float32), "convert x to float64 first"),
        Mutant(as_it_comes, "convert x to float64 first"),
        Mutant(slope(by_the_whole_gradient), "you asked the function 6 times: two are enough"),
        Mutant(slope(lambda f, x, d, step: ops.numeric_gradient(f, x, step)), "ask twice"),
        Mutant(slope(lambda f, x, d, step: ops.numeric_gradient(f, x, step) * d), "ask twice"),
        Mutant(slope_in_place, "changed its input x"),
        Mutant(lambda function, x, direction, step=1e-5: None, "is the return statement missing?"),
    ],
    "affine_backward_in_out": [
        Mutant(lambda **given: ops.affine_backward(**given), "for a weight (M, D): here it is (D, M)"),
        Mutant(in_out_items(x=lambda g, x, w: g @ w), "weight is the wrong way round"),
        Mutant(in_out_items(weight=lambda g, x, w: g.T @ x), "grad_weight is transposed"),
        Mutant(in_out_items(bias=lambda g, x, w: g.sum(axis=1)), "sum over the samples, axis 0"),
        Mutant(in_out_items(bias=lambda g, x, w: g.sum()), "one number an output"),
        Mutant(in_out_items(bias=lambda g, x, w: g.mean(axis=0)), "mean over the samples: add up"),
        Mutant(in_out_items(bias=lambda g, x, w: g), "(N, M) must become (M,)"),
        Mutant(lambda grad, x, weight: (grad @ weight.T, x.T @ grad / len(x), grad.mean(axis=0)), "are divided by N"),
        Mutant(lambda grad, x, weight: (x.T @ grad, grad @ weight.T, grad.sum(axis=0)), "the order is grad_x"),
        Mutant(lambda **given: in_out(**given)[0], "return grad_x, grad_weight, grad_bias"),
    ],
    "softmax_cross_entropy_smoothing": [
        Mutant(lambda scores, labels, smoothing=0.1: ops.softmax_cross_entropy(scores, labels), "are not smoothed"),
        Mutant(
            smoothed_changed(lambda loss, grad, s, t: (loss, ops.softmax_cross_entropy(s, t)[1])),
            "subtract the targets, not one-hot",
        ),
        Mutant(
            smoothed_changed(lambda loss, grad, s, t: (ops.softmax_cross_entropy(s, t)[0], grad)),
            "the loss is the plain one",
        ),
        Mutant(with_targets(shared_by_the_others), "to the other classes alone"),
        Mutant(with_targets(without_its_own_share), "so that targets add up to 1"),
        Mutant(lambda scores, labels, smoothing=0.1: smoothed(scores, labels), "your smoothing is 0.1"),
        Mutant(smoothed_by_probabilities, "its logarithm -inf"),
        Mutant(smoothed_and_overflowing, "exp overflows"),
        Mutant(smoothed_in_place, "changed its input scores"),
        Mutant(smoothed_in_float64, "grad: the values are right, but dtype is float64, expected float32"),
        Mutant(smoothed_changed(lambda loss, grad, s, t: (loss * len(s), grad)), "yours is the sum"),
        Mutant(smoothed_changed(lambda loss, grad, s, t: (loss, grad * len(s))), "the gradient is not divided by N"),
        Mutant(smoothed_changed(lambda loss, grad, s, t: (loss, -grad)), "probabilities minus targets"),
        Mutant(smoothed_changed(lambda loss, grad, s, t: loss), "return loss, grad"),
    ],
    "col2im_dilated": [
        Mutant(dilated_with(offset=lambda i, s, d: i), "the dilation is missing"),
        Mutant(dilated_with(offset=lambda i, s, d: i * s), "the dilation is missing"),
        Mutant(dilated_with(apart=lambda s, d: d), "ValueError"),
        Mutant(dilated_with(overwrite=True), "values are overwritten where windows overlap"),
        Mutant(dilated_with(crop=False), "the padding is still there"),
        Mutant(dilated_with(start=lambda p: 0), "cropped at the wrong place"),
        Mutant(dilated_with(dtype=float), "dtype is float64, expected float32"),
        Mutant(dilated_rows_mixed, "read as (KH, KW, C)"),
        Mutant(dilated_images_first, "read as (N, C, KH, KW)"),
        Mutant(lambda dilation=1, **given: ops.col2im(**given), "ValueError"),
    ],
    "conv2d_backward_nhwc": [
        Mutant(nhwc_reshaped, "a reshape does not swap axes"),
        Mutant(nhwc_left_in_nchw, "in yours, and grad_weight (O, C, KH, KW)"),
        Mutant(lambda **given: nhwc(**given, overwrite=True), "overwritten where windows overlap"),
        Mutant(
            nhwc_items(x=lambda r, g, x, w, s, p: nhwc(g, x, w[::-1, ::-1], s, p)[0]), "kernel turned by 180 degrees"
        ),
        Mutant(nhwc_items(x=with_the_border), "cut the padding off"),
        Mutant(nhwc_items(weight=lambda r, *_: r[::-1, ::-1]), "grad_weight is turned by 180 degrees"),
        Mutant(nhwc_items(weight=lambda r, *_: r.swapaxes(2, 3)), "grad_weight is (KH, KW, O, C)"),
        Mutant(nhwc_items(weight=lambda r, *_: r.reshape(-1, r.shape[3])), "grad_weight is a matrix still"),
        Mutant(nhwc_items(bias=lambda r, g, *_: g.mean(axis=(0, 1, 2))), "mean over images and positions"),
        Mutant(nhwc_items(bias=lambda r, g, *_: g.sum(axis=(0, 2, 3))), "so sum over axes 0, 1 and 2"),
        Mutant(nhwc_items(bias=lambda r, g, *_: g.sum(axis=0)), "summed over the images only"),
        Mutant(nhwc_divided, "are divided by N: add up"),
        Mutant(lambda **given: nhwc(**given)[:2], "expected 3 items, got 2"),
    ],
}

HONEST = {"col2im_dilated": [dilated_image_by_image, dilated_by_way_of_float64, dilated_by_an_index_for_each_value]}

LOOP = {"col2im_dilated": dilated_window_by_window}
