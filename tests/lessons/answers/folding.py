"""Wrong and imperfect ways back through windows, in lesson 04."""

import numpy as np

from unrolled import ops

# col2im


def folded(columns, x_shape, kernel_size, stride, padding, add=True):
    """The padded image, window by window."""
    (n, c, h, w), (kh, kw) = x_shape, kernel_size
    oh, ow = ops.conv2d_output_size((h, w), kernel_size, stride, padding)
    x = np.zeros((n, c, h + 2 * padding, w + 2 * padding), columns.dtype)
    for at, (image, row, column) in enumerate(np.ndindex(n, oh, ow)):
        top, left = row * stride, column * stride
        window = columns[:, at].reshape(c, kh, kw)
        if add:
            x[image, :, top : top + kh, left : left + kw] += window
        else:
            x[image, :, top : top + kh, left : left + kw] = window
    return x


def col2im_overwriting(columns, x_shape, kernel_size, stride=1, padding=0):
    h, w = x_shape[2:]
    x = folded(columns, x_shape, kernel_size, stride, padding, add=False)
    return x[:, :, padding : padding + h, padding : padding + w]


def col2im_overwriting_slices(columns, x_shape, kernel_size, stride=1, padding=0):
    (n, c, h, w), (kh, kw) = x_shape, kernel_size
    oh, ow = ops.conv2d_output_size((h, w), kernel_size, stride, padding)
    x = np.zeros((n, c, h + 2 * padding, w + 2 * padding), columns.dtype)
    places = columns.reshape(c, kh, kw, n, oh, ow)
    for i in range(kh):
        for j in range(kw):
            x[:, :, i : i + stride * oh : stride, j : j + stride * ow : stride] = places[:, i, j].swapaxes(0, 1)
    return x[:, :, padding : padding + h, padding : padding + w]


def col2im_with_its_padding(columns, x_shape, kernel_size, stride=1, padding=0):
    return folded(columns, x_shape, kernel_size, stride, padding)


def col2im_cropped_by_minus_padding(columns, x_shape, kernel_size, stride=1, padding=0):
    return folded(columns, x_shape, kernel_size, stride, padding)[:, :, padding:-padding, padding:-padding]


def col2im_cropped_at_the_corner(columns, x_shape, kernel_size, stride=1, padding=0):
    return folded(columns, x_shape, kernel_size, stride, padding)[:, :, : x_shape[2], : x_shape[3]]


def col2im_averaging(columns, x_shape, kernel_size, stride=1, padding=0):
    total = ops.col2im(columns, x_shape, kernel_size, stride, padding)
    return total / np.maximum(ops.col2im(np.ones_like(columns), x_shape, kernel_size, stride, padding), 1)


def col2im_without_stride(columns, x_shape, kernel_size, stride=1, padding=0):
    (n, c, h, w), (kh, kw) = x_shape, kernel_size
    oh, ow = ops.conv2d_output_size((h, w), kernel_size, stride, padding)
    x = np.zeros((n, c, h + 2 * padding, w + 2 * padding), columns.dtype)
    places = columns.reshape(c, kh, kw, n, oh, ow)
    for i in range(kh):
        for j in range(kw):
            x[:, :, i : i + oh, j : j + ow] += places[:, i, j].swapaxes(0, 1)
    return x[:, :, padding : padding + h, padding : padding + w]


def col2im_reshaped_place_by_place(columns, x_shape, kernel_size, stride=1, padding=0):
    (n, c, h, w), (kh, kw) = x_shape, kernel_size
    oh, ow = ops.conv2d_output_size((h, w), kernel_size, stride, padding)
    x = np.zeros((n, c, h + 2 * padding, w + 2 * padding), columns.dtype)
    places = columns.reshape(c, kh, kw, n, oh, ow)
    for i in range(kh):
        for j in range(kw):
            values = places[:, i, j].reshape(n, c, oh, ow)
            x[:, :, i : i + stride * oh : stride, j : j + stride * ow : stride] += values
    return x[:, :, padding : padding + h, padding : padding + w]


def col2im_of_the_first_image(columns, x_shape, kernel_size, stride=1, padding=0):
    n = x_shape[0]
    repeated = np.tile(columns[:, : columns.shape[1] // n], (1, n))
    return ops.col2im(repeated, x_shape, kernel_size, stride, padding)


def col2im_not_swapped(columns, x_shape, kernel_size, stride=1, padding=0):
    (n, c, h, w), (kh, kw) = x_shape, kernel_size
    oh, ow = ops.conv2d_output_size((h, w), kernel_size, stride, padding)
    x = np.zeros((n, c, h + 2 * padding, w + 2 * padding), columns.dtype)
    places = columns.reshape(c, kh, kw, n, oh, ow)
    for i in range(kh):
        for j in range(kw):
            x[:, :, i : i + stride * oh : stride, j : j + stride * ow : stride] += places[:, i, j]
    return x[:, :, padding : padding + h, padding : padding + w]


def col2im_cropped_too_early(columns, x_shape, kernel_size, stride=1, padding=0):
    h, w = x_shape[2:]
    return folded(columns, x_shape, kernel_size, stride, padding)[:, :, padding:h, padding:w]


def col2im_images_first(columns, x_shape, kernel_size, stride=1, padding=0):
    """The columns read as (N, C, KH, KW, OH, OW)."""
    (n, c, h, w), (kh, kw) = x_shape, kernel_size
    oh, ow = ops.conv2d_output_size((h, w), kernel_size, stride, padding)
    mixed = columns.reshape(n, c, kh, kw, oh, ow).transpose(1, 2, 3, 0, 4, 5)
    return ops.col2im(mixed.reshape(columns.shape), x_shape, kernel_size, stride, padding)


def col2im_channels_last(columns, x_shape, kernel_size, stride=1, padding=0):
    c, (kh, kw) = x_shape[1], kernel_size
    mixed = columns.reshape(kh, kw, c, -1).transpose(2, 0, 1, 3)
    return ops.col2im(mixed.reshape(columns.shape), x_shape, kernel_size, stride, padding)


def col2im_positions_by_column(columns, x_shape, kernel_size, stride=1, padding=0):
    oh, ow = ops.conv2d_output_size(x_shape[2:], kernel_size, stride, padding)
    mixed = columns.reshape(-1, x_shape[0], ow, oh).swapaxes(2, 3)
    return ops.col2im(mixed.reshape(columns.shape), x_shape, kernel_size, stride, padding)


def col2im_in_float64(columns, x_shape, kernel_size, stride=1, padding=0):
    return ops.col2im(columns, x_shape, kernel_size, stride, padding).astype(float)


# Honest: correct and imperfect


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


def col2im_by_way_of_float64(columns, x_shape, kernel_size, stride=1, padding=0):
    (n, c, h, w), (kh, kw) = x_shape, kernel_size
    oh, ow = ops.conv2d_output_size((h, w), kernel_size, stride, padding)
    x = np.zeros((n, c, h + 2 * padding, w + 2 * padding))
    places = columns.reshape(c, kh, kw, n, oh, ow)
    for i in range(kh):
        for j in range(kw):
            x[:, :, i : i + stride * oh : stride, j : j + stride * ow : stride] += places[:, i, j].swapaxes(0, 1)
    return x[:, :, padding : padding + h, padding : padding + w].astype(columns.dtype)


def col2im_window_by_window(columns, x_shape, kernel_size, stride=1, padding=0):
    """The loop that the speed part must not pass."""
    h, w = x_shape[2:]
    x = folded(columns, x_shape, kernel_size, stride, padding)
    return x[:, :, padding : padding + h, padding : padding + w]


# conv2d_backward


def convolution_items(*, x=None, weight=None, bias=None):
    """Some of the three gradients computed in another way: change(right, grad, x, weight, stride, padding)."""

    def variant(grad, stride=1, padding=0, **arrays):
        given = (grad, arrays["x"], arrays["weight"], stride, padding)
        right = ops.conv2d_backward(*given)
        changes = zip((x, weight, bias), right, strict=True)
        return tuple(change(item, *given) if change else item for change, item in changes)

    return variant


def convolution_reshaped_at_once(grad, x, weight, stride=1, padding=0):
    rows = grad.reshape(len(weight), -1)
    columns = ops.im2col(x, weight.shape[2:], stride, padding)
    grad_columns = weight.reshape(len(weight), -1).T @ rows
    grad_x = ops.col2im(grad_columns, x.shape, weight.shape[2:], stride, padding)
    return grad_x, (rows @ columns.T).reshape(weight.shape), rows.sum(axis=1)


def convolution_mixed_but_for_the_bias(grad, x, weight, stride=1, padding=0):
    grad_x, grad_weight, _ = convolution_reshaped_at_once(grad, x, weight, stride, padding)
    return grad_x, grad_weight, grad.sum(axis=(0, 2, 3))


def convolution_with_turned_kernel(item, grad, x, weight, stride, padding):
    return ops.conv2d_backward(grad, x, weight[:, :, ::-1, ::-1], stride, padding)[0]


def convolution_with_all_axes_turned_around(grad, x, weight, stride=1, padding=0):
    rows = grad.swapaxes(0, 1).reshape(len(weight), -1)
    grad_columns = weight.T.reshape(-1, len(weight)) @ rows
    _, grad_weight, grad_bias = ops.conv2d_backward(grad, x, weight, stride, padding)
    return ops.col2im(grad_columns, x.shape, weight.shape[2:], stride, padding), grad_weight, grad_bias


def convolution_with_rows(*axes):
    def variant(grad, x, weight, stride=1, padding=0):
        rows = grad.transpose(axes).reshape(len(weight), -1)
        columns = ops.im2col(x, weight.shape[2:], stride, padding)
        grad_columns = weight.reshape(len(weight), -1).T @ rows
        grad_x = ops.col2im(grad_columns, x.shape, weight.shape[2:], stride, padding)
        return grad_x, (rows @ columns.T).reshape(weight.shape), rows.sum(axis=1)

    return variant


def convolution_with_torn_filters(grad, x, weight, stride=1, padding=0):
    rows = grad.swapaxes(0, 1).reshape(len(weight), -1)
    _, grad_weight, grad_bias = ops.conv2d_backward(grad, x, weight, stride, padding)
    grad_columns = weight.reshape(-1, len(weight)) @ rows
    return ops.col2im(grad_columns, x.shape, weight.shape[2:], stride, padding), grad_weight, grad_bias


def convolution_with_products_reshaped(grad, x, weight, stride=1, padding=0):
    rows = grad.swapaxes(0, 1).reshape(len(weight), -1)
    columns = ops.im2col(x, weight.shape[2:], stride, padding)
    grad_x, _, grad_bias = ops.conv2d_backward(grad, x, weight, stride, padding)
    return grad_x, (columns @ rows.T).reshape(weight.shape), grad_bias


def convolution_with_options_forgotten_on_the_way_back(grad, x, weight, stride=1, padding=0):
    rows = grad.swapaxes(0, 1).reshape(len(weight), -1)
    _, grad_weight, grad_bias = ops.conv2d_backward(grad, x, weight, stride, padding)
    grad_x = ops.col2im(weight.reshape(len(weight), -1).T @ rows, x.shape, weight.shape[2:])
    return grad_x, grad_weight, grad_bias


def convolution_without_stride(grad, x, weight, stride=1, padding=0):
    return ops.conv2d_backward(grad, x, weight, 1, padding)


def convolution_without_padding(grad, x, weight, stride=1, padding=0):
    return ops.conv2d_backward(grad, x, weight, stride)


def convolution_divided(grad, x, weight, stride=1, padding=0):
    grad_x, grad_weight, grad_bias = ops.conv2d_backward(grad, x, weight, stride, padding)
    return grad_x, grad_weight / len(x), grad_bias / len(x)


# max_pool2d_backward


def pooling_by_windows(give):
    """Window by window: give(window, grad) is what the pixels of the window get."""

    def variant(grad, x, kernel_size, stride=None, padding=0):
        stride = stride or kernel_size
        h, w = x.shape[2:]
        around = ((0, 0), (0, 0), (padding, padding), (padding, padding))
        padded = np.pad(x, around, constant_values=-np.inf)
        result = np.zeros(padded.shape, grad.dtype)
        for image, channel, row, column in np.ndindex(grad.shape):
            top, left = row * stride, column * stride
            place = (image, channel, slice(top, top + kernel_size), slice(left, left + kernel_size))
            result[place] += give(padded[place], grad[image, channel, row, column])
        return result[:, :, padding : padding + h, padding : padding + w]

    return variant


def to_all_ties(window, grad):
    return (window == window.max()) * grad


def shared_by_ties(window, grad):
    ties = window == window.max()
    return ties * grad / ties.sum()


def to_the_last(window, grad):
    given = np.zeros(window.size)
    given[window.size - 1 - window.ravel()[::-1].argmax()] = grad
    return given.reshape(window.shape)


def to_every_pixel(window, grad):
    return np.ones(window.shape) * grad


def spread_evenly(window, grad):
    return np.ones(window.shape) * grad / window.size


def pooling_overwriting(grad, x, kernel_size, stride=None, padding=0):
    indices = ops.max_pool2d_indices(x, kernel_size, stride, padding)
    result = np.zeros(x.shape, grad.dtype)
    for image, channel, row, column in np.ndindex(grad.shape):
        place = divmod(int(indices[image, channel, row, column]), x.shape[3])
        result[image, channel, place[0], place[1]] = grad[image, channel, row, column]
    return result


def pooling_of_maxima(grad, x, kernel_size, stride=None, padding=0):
    indices = ops.max_pool2d_indices(x, kernel_size, stride, padding)
    return ops.max_unpool2d(ops.max_pool2d(x, kernel_size, stride, padding), indices, x.shape[2:])


def pooling_without_padding(grad, x, kernel_size, stride=None, padding=0):
    return ops.max_pool2d_backward(grad, x, kernel_size, stride)


def pooling_without_stride(grad, x, kernel_size, stride=None, padding=0):
    return ops.max_pool2d_backward(grad, x, kernel_size, None, padding)


def pooling_without_options(grad, x, kernel_size, stride=None, padding=0):
    return ops.max_unpool2d(grad, ops.max_pool2d_indices(x, kernel_size), x.shape[2:])


def pooling_into_the_size_of_grad(grad, x, kernel_size, stride=None, padding=0):
    return ops.max_unpool2d(grad, ops.max_pool2d_indices(x, kernel_size, stride, padding), grad.shape[2:])
