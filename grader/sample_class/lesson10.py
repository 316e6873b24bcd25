"""Lesson 10: in what a student of the sample class differs from the solution, a class a student."""


class slow:
    """Right, with a loop over places."""

    fft_conv2d = {
        "    (kh, kw), (h, w) = weight.shape[2:], x.shape[2:]\n": (
            "    (kh, kw), (h, w) = weight.shape[2:], x.shape[2:]\n"
            "    padded = xp.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))\n"
            "    rows, columns = range(h + 2 * padding - kh + 1), range(w + 2 * padding - kw + 1)\n"
            "    flat = weight.reshape(len(weight), -1).T\n"
            "    windows = [padded[:, :, i : i + kh, j : j + kw] for i in rows for j in columns]\n"
            "    y = xp.stack([window.reshape(len(x), -1) @ flat for window in windows], axis=2)\n"
            "    return y.reshape(len(x), len(weight), len(rows), len(columns)) + bias[:, None, None]\n"
        ),
    }


class off_by_one:
    """A last tile too few, and results that begin a pixel too late."""

    count_multiplications = {"-(-size // tile)": "(size // tile)"}
    fft_conv2d = {"kh - 1 - padding, kw - 1 - padding": "kh - padding, kw - padding"}
    overlap_add = {"kernel - 1, image.shape[1] + kernel - 1": "kernel, image.shape[1] + kernel"}


class another_way:
    """Right, by other ways: frequencies without matrices, and a rule by area."""

    fft_conv2d = {
        "(pixels @ weights).transpose(2, 3, 0, 1)": (
            "(pixels[:, :, :, :, None] * weights[:, :, None]).sum(axis=3).transpose(2, 3, 0, 1)"
        ),
    }
    choose_algorithm = {"kernel >= 11 and min(c, o) < 32": "kernel**2 > 100 and c * o <= 1024"}
