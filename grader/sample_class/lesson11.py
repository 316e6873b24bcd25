"""Lesson 11: in what a student of the sample class differs from the solution, a class a student."""


class slow:
    """Right, with a loop over pairs of rows."""

    binary_matmul = {
        "        y[row] = k - 2 * np.bitwise_count((a[row] ^ b) & words).sum(axis=1, dtype=np.int32)\n": (
            "        for column in range(len(b)):\n"
            "            differ = (a[row] ^ b[column]) & words\n"
            "            y[row, column] = k - 2 * sum(int(word).bit_count() for word in differ)\n"
        ),
    }


class off_by_one:
    """A good step that counts too late, a range that reaches to -128, and a bit too many."""

    loss_scale_step = {"if good_steps + 1 == every": "if good_steps == every"}
    quantize_int8 = {"np.clip(steps, -127, 127)": "np.clip(steps - (steps == -127), -128, 127)"}
    binary_matmul = {"(1 << k % 64) - 1": "(2 << k % 64) - 1"}


class another_way:
    """Right, by other ways: the rank of each magnitude, and all pairs at once."""

    prune = {
        "    mask[np.argsort(np.abs(weight), axis=None)[: int(fraction * weight.size)]] = 0\n": (
            "    ranks = np.argsort(np.argsort(np.abs(weight), axis=None))\n"
            "    mask[ranks < int(fraction * weight.size)] = 0\n"
        ),
    }
    int8_matmul = {"a.astype(np.int32) @ b.astype(np.int32)": 'np.einsum("nk,km->nm", a, b, dtype=np.int32)'}
