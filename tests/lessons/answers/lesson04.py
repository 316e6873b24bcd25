"""Wrong and imperfect answers to the exercises of lesson 04."""

import numpy as np

from unrolled import ops

from . import Mutant, solution

# softmax_cross_entropy


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


# Right in other styles


def numeric_in_place_on_a_copy(function, x, step=1e-5):
    x = x.astype(np.float64)
    gradient = np.empty_like(x)
    for index, value in np.ndenumerate(x.copy()):
        x[index] = value + step
        up = function(x)
        x[index] = value - step
        gradient[index] = (up - function(x)) / (2 * step)
        x[index] = value
    return gradient


def numeric_with_a_helper(function, x, step=1e-5):
    def moved(place, by):
        copied = np.array(x, np.float64)
        copied.flat[place] += by
        return function(copied)

    slopes = [(moved(place, step) - moved(place, -step)) / step / 2 for place in range(x.size)]
    return np.reshape(slopes, x.shape)


def numeric_by_iterator(function, x, step=1e-5):
    gradient, places = np.zeros(x.shape), np.nditer(x, flags=["multi_index"])
    for _ in places:
        at = np.zeros(x.shape)
        at[places.multi_index] = step
        gradient[places.multi_index] = 0.5 * (function(x + at) - function(x - at)) / step
    return gradient


def affine_sample_by_sample(grad, x, weight):
    grad_x, grad_weight, grad_bias = np.zeros_like(x), np.zeros_like(weight), np.zeros_like(weight[:, 0])
    for n, row in enumerate(grad):
        grad_x[n] = row @ weight
        grad_weight += np.outer(row, x[n])
        grad_bias += row
    return [grad_x, grad_weight, grad_bias]


def loss_with_targets(scores, labels, smoothing=0):
    shifted = scores - scores.max(axis=1, keepdims=True)
    log_p = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    targets = np.full_like(scores, smoothing / scores.shape[1])
    targets[range(len(labels)), labels] += 1 - smoothing
    return float(-(targets * log_p).sum() / len(scores)), (np.exp(log_p) - targets) / len(scores)


def loss_row_by_row(scores, labels, smoothing=0):
    loss, grad = 0, np.empty_like(scores)
    for row, (values, label) in enumerate(zip(scores, labels, strict=True)):
        below = values - np.amax(values)
        powers = np.exp(below)
        loss += np.log(powers.sum()) - (1 - smoothing) * below[label] - smoothing * below.mean()
        grad[row] = (powers / powers.sum() - smoothing / len(values)) / len(scores)
        grad[row, label] -= (1 - smoothing) / len(scores)
    return loss / len(scores), grad


def loss_of_columns(scores, labels, smoothing=0):
    turned, rows = scores.T, np.arange(len(labels))
    sums = turned.max(axis=0) + np.log(np.exp(turned - turned.max(axis=0)).sum(axis=0))
    grad = np.exp(turned - sums).T - scores.dtype.type(smoothing / len(turned))
    grad[rows, labels] -= 1 - smoothing
    wanted = np.take_along_axis(scores, labels[:, None], 1)[:, 0] * (1 - smoothing) + smoothing * turned.mean(axis=0)
    return np.average(sums - wanted), grad / scores.dtype.type(len(labels))


class Loss:
    def __call__(self, scores, labels, smoothing=0):
        shifted = scores - np.array([max(row) for row in scores], scores.dtype)[:, np.newaxis]
        targets = (1 - smoothing) * np.eye(scores.shape[1])[labels] + smoothing / scores.shape[1]
        sums = np.einsum("nm->n", np.exp(shifted))
        losses = np.log(sums) - np.einsum("nm,nm->n", targets, shifted)
        return losses.mean(), ((np.exp(shifted) / sums[:, None] - targets) / len(losses)).astype(scores.dtype)


def col2im_by_padded_indices(columns, x_shape, kernel_size, stride=1, padding=0):
    n, c, h, w = x_shape
    padded = np.zeros((n, c, h + 2 * padding, w + 2 * padding), columns.dtype)
    numbers = np.arange(padded.size).reshape(padded.shape)
    np.add.at(padded.reshape(-1), ops.im2col(numbers, kernel_size, stride), columns)
    return padded[:, :, padding:, padding:][:, :, :h, :w]


def col2im_of_images_first(columns, x_shape, kernel_size, stride=1, padding=0):
    (n, c, h, w), (kh, kw) = x_shape, kernel_size
    oh, ow = ops.conv2d_output_size((h, w), kernel_size, stride, padding)
    parts = columns.reshape(c, kh * kw, n, oh, ow).transpose(2, 0, 1, 3, 4)
    x = np.pad(np.zeros(x_shape, columns.dtype), ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    for place in range(kh * kw):
        i, j = divmod(place, kw)
        x[:, :, i:, j:][:, :, : stride * oh : stride, : stride * ow : stride] += parts[:, :, place]
    return x[..., padding : padding + h, padding : padding + w].copy()


def convolution_by_affine(grad, x, weight, stride=1, padding=0):
    rows = grad.transpose(0, 2, 3, 1).reshape(-1, len(weight))
    patches = ops.im2col(x, weight.shape[2:], stride, padding).reshape(weight[0].size, -1).T
    grad_patches, grad_weight, grad_bias = ops.affine_backward(rows, patches, weight.reshape(len(weight), -1))
    grad_x = ops.col2im(grad_patches.T, x.shape, weight.shape[2:], stride, padding)
    return grad_x, grad_weight.reshape(weight.shape), grad_bias


def convolution_by_einsum(grad, x, weight, stride=1, padding=0):
    columns = ops.im2col(x, weight.shape[2:], stride, padding)
    apart = columns.reshape(*weight.shape[1:], len(x), *grad.shape[2:])
    back = np.einsum("nohw,ocij->cijnhw", grad, weight).reshape(columns.shape)
    grad_x = ops.col2im(back, x.shape, weight.shape[2:], stride=stride, padding=padding)
    return grad_x, np.einsum("nohw,cijnhw->ocij", grad, apart), np.einsum("nohw->o", grad)


def convolution_by_places(grad, x, weight, stride=1, padding=0):
    (oh, ow), (h, w) = grad.shape[2:], x.shape[2:]
    padded = np.pad(x, [(0, 0)] * 2 + [(padding, padding)] * 2)
    back, grad_weight = np.zeros_like(padded), np.zeros_like(weight)
    for i, j in np.ndindex(weight.shape[2:]):
        window = np.s_[:, :, i : i + stride * oh : stride, j : j + stride * ow : stride]
        grad_weight[:, :, i, j] = np.einsum("nohw,nchw->oc", grad, padded[window])
        back[window] += np.einsum("nohw,oc->nchw", grad, weight[:, :, i, j])
    return back[:, :, padding : padding + h, padding : padding + w], grad_weight, grad.sum(axis=(0, 2, 3))


def convolution_window_by_window(grad, x, weight, stride=1, padding=0):
    padded = np.pad(x, [(0, 0)] * 2 + [(padding, padding)] * 2)
    back, grad_weight = np.zeros_like(padded), np.zeros_like(weight)
    for n, o, row, column in np.ndindex(grad.shape):
        window = np.s_[n, :, row * stride :, column * stride :]
        fits = np.s_[:, : weight.shape[2], : weight.shape[3]]
        back[window][fits] += grad[n, o, row, column] * weight[o]
        grad_weight[o] += grad[n, o, row, column] * padded[window][fits]
    return back[:, :, padding:, padding:][:, :, : x.shape[2], : x.shape[3]], grad_weight, grad.sum((0, 2, 3))


def pooling_window_by_window(grad, x, kernel_size, stride=None, padding=0):
    back, step = np.zeros_like(x), stride or kernel_size
    for n, c, row, column in np.ndindex(grad.shape):
        top, left = row * step - padding, column * step - padding
        window = np.s_[n, c, max(top, 0) : top + kernel_size, max(left, 0) : left + kernel_size]
        at = np.unravel_index(x[window].argmax(), x[window].shape)
        back[window][at] += grad[n, c, row, column]
    return back


def pooling_by_bincount(grad, x, kernel_size, stride=None, padding=0):
    places = ops.max_pool2d_indices(x, kernel_size, stride, padding)
    first = np.arange(len(x) * x.shape[1]).reshape(*x.shape[:2], 1, 1) * x[0, 0].size
    return np.bincount((first + places).ravel(), grad.ravel(), x.size).reshape(x.shape).astype(grad.dtype)


def pooling_by_one_hot(grad, x, kernel_size, stride=None, padding=0):
    places = ops.max_pool2d_indices(x, kernel_size, stride, padding).reshape(*x.shape[:2], -1)
    one_hot = places[..., None] == np.arange(x[0, 0].size)
    return np.einsum("nck,nckp->ncp", grad.reshape(places.shape), one_hot).reshape(x.shape)


MUTANTS = {
    "col2im": [Mutant(solution("04_backprop", "col2im", ("j].swapaxes(0, 1)", "j]")), "two axes exchanged")],
    "conv2d_backward": [
        Mutant(convolution_with_options_forgotten_on_the_way_back, "these columns belong to other windows")
    ],
    "max_pool2d_backward": [
        Mutant(pooling_without_options, "pass stride and padding on"),
        Mutant(pooling_into_the_size_of_grad, "size is x.shape[2:]"),
    ],
}

HONEST = {"col2im": [col2im_image_by_image, col2im_of_images_first]}

LOOP = {"col2im": col2im_window_by_window}

RIGHT = {
    "numeric_gradient": [
        numeric_in_place_on_a_copy,
        numeric_with_a_helper,
        numeric_by_iterator,
        lambda function, x, step=1e-5: (
            np.array(
                [
                    np.subtract(*(function(x + way * np.eye(x.size)[i].reshape(x.shape)) for way in (step, -step)))
                    for i in range(x.size)
                ]
            ).reshape(x.shape)
            / (2 * step)
        ),
    ],
    "affine_backward": [
        affine_sample_by_sample,
        lambda grad, x, weight: (np.dot(grad, weight), (x.T @ grad).T, np.ones(len(grad), grad.dtype) @ grad),
        lambda grad, x, weight: (
            np.inner(grad, weight.T),
            np.tensordot(grad, x, (0, 0)),
            np.array([*map(sum, grad.T)]),
        ),
        lambda grad, x, weight: (
            (grad[:, :, None] * weight).sum(axis=1),
            (grad[:, :, None] * x[:, None]).sum(axis=0),
            np.add.reduce(grad),
        ),
    ],
    "softmax_cross_entropy": [loss_with_targets, loss_row_by_row, loss_of_columns, Loss()],
    "col2im": [col2im_by_padded_indices, col2im_by_bincount],
    "conv2d_backward": [
        convolution_by_affine,
        convolution_by_einsum,
        convolution_by_places,
        convolution_window_by_window,
    ],
    "max_pool2d_backward": [
        pooling_window_by_window,
        pooling_by_bincount,
        pooling_by_one_hot,
        lambda grad, x, *windows, **named: np.concatenate(
            [
                ops.max_unpool2d(g[None], ops.max_pool2d_indices(image[None], *windows, **named), image.shape[1:])
                for g, image in zip(grad, x, strict=True)
            ]
        ),
    ],
}
