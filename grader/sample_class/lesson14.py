"""Lesson 14: in what a student of the sample class differs from the solution, a class a student."""


class slow:
    """Right, with one block for all, and a kernel that reads each key for each query."""

    attention_blocks = {"    for first in range(0, t, block):": "    block = t\n    for first in range(0, t, block):"}
    attention_kernel = {"keys[i * WIDTH + p]": "k[start + i, p]"}


class off_by_one:
    """Own keys that are not seen, and a last tile that is left out."""

    attention_loops = {"row + 1 if causal": "max(row, 1) if causal"}
    attention_kernel = {"range(0, n, TILE)": "range(0, n - 1, TILE)"}


class another_way:
    """Right, by other ways: finite numbers for what is hidden, another room for keys, powers for roots."""

    attention_plain = {"scores, -np.inf)": "scores, np.float32(-1e30))"}
    attention_blocks = {"largest, total, sums = -np.inf, 0, 0": "largest, total, sums = -1e30, 0, 0"}
    attention_kernel = {"TILE * WIDTH)": "TILE * (WIDTH + 2))", "* WIDTH + ": "* (WIDTH + 2) + "}
    attention_backward = {"1 / sqrt(q.shape[2])": "q.shape[2] ** -0.5"}
