"""Right, and half repaired: nothing waits for a channel's mean any more, but the loop over channels is still there."""

from unrolled import device


def repaired_step(images, weight):
    xp = device.array_module(images)
    n, channels = images.shape[:2]
    middle = 1 - 0.2 * xp.abs(xp.arange(5, dtype=xp.float32) - 2)
    x = images * middle * middle[:, None]
    x[1::2] = x[1::2, :, :, ::-1].copy()
    for c in range(channels):
        x[:, c] = x[:, c] - x[:, c].mean()
        x[:, c] = x[:, c] / x[:, c].std()
    scores = xp.maximum(x.reshape(n, -1) @ weight, 0)
    rows = scores.reshape(-1, 32)
    largest = rows[xp.arange(len(rows)), rows.argmax(axis=1)]
    return 1.001 * largest.reshape(n, -1)
