"""float64, because 0.2 times whole numbers is; float32 again at the end, which is too late."""

from unrolled import device


def repaired_step(images, weight):
    xp = device.array_module(images)
    n = len(images)
    middle = 1 - 0.2 * xp.abs(xp.arange(5) - 2)
    x = images * middle * middle[:, None]
    x[1::2] = x[1::2, :, :, ::-1].copy()
    x = x - x.mean(axis=(0, 2, 3), keepdims=True)
    x = x / x.std(axis=(0, 2, 3), keepdims=True)
    scores = xp.maximum(x.reshape(n, -1) @ weight, 0)
    rows = scores.reshape(-1, 32)
    largest = rows[xp.arange(len(rows)), rows.argmax(axis=1)]
    return 1.001 * largest.reshape(n, -1).astype(images.dtype)
