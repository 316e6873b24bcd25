"""float64, because where and zeros say so; sometimes float32 again at the end, which is too late."""

from unrolled import device, ops


def activation(kind, x):
    xp = device.array_module(x)
    if kind == "step":
        return xp.where(x > 0, 1.0, 0.0)
    if kind == "relu":
        return xp.maximum(x, 0)
    if kind == "leaky_relu":
        return xp.maximum(x, 0.01 * x)
    return 1 / (1 + xp.exp(-x))


def conv2d_port(x, weight, bias, padding=0):
    xp = device.array_module(x)
    (n, c, h, w), (o, _, kh, kw) = x.shape, weight.shape
    oh, ow = h + 2 * padding - kh + 1, w + 2 * padding - kw + 1
    padded = xp.zeros((n, c, h + 2 * padding, w + 2 * padding))
    padded[:, :, padding : padding + h, padding : padding + w] = x
    columns = xp.zeros((c, kh, kw, n, oh, ow))
    for i in range(kh):
        for j in range(kw):
            columns[:, i, j] = padded[:, :, i : i + oh, j : j + ow].swapaxes(0, 1)
    y = weight.reshape(o, -1) @ columns.reshape(c * kh * kw, -1) + bias[:, None]
    return y.reshape(o, n, oh, ow).swapaxes(0, 1).astype(x.dtype)


def max_pool2d_port(x, kernel_size):
    xp, k = device.array_module(x), kernel_size
    n, c, h, w = x.shape
    oh, ow = h // k, w // k
    corner = (xp.arange(oh)[:, None] * w + xp.arange(ow)) * k
    largest, indices = x[:, :, : oh * k : k, : ow * k : k], xp.zeros((n, c, oh, ow)) + corner
    for i in range(k):
        for j in range(k):
            pixel = x[:, :, i : i + oh * k : k, j : j + ow * k : k]
            leads = pixel > largest
            indices = xp.where(leads, corner + (i * w + j), indices)
            largest = xp.where(leads, pixel, largest)
    return largest, indices


def train_epoch(images, labels, weight, bias, batch_size, rate):
    starts = range(0, len(images), batch_size)
    losses = device.array_module(images).zeros(len(starts))
    for step, start in enumerate(starts):
        x = images[start : start + batch_size].reshape(-1, weight.shape[1])
        loss, grad = ops.softmax_cross_entropy(ops.affine(x, weight, bias), labels[start : start + batch_size])
        weight = weight - rate * (grad.T @ x)
        bias = bias - rate * grad.sum(axis=0)
        losses[step] = loss
    return weight, bias, losses
