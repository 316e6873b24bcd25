"""Lesson 08: in what a student of the sample class differs from the solution, a class a student."""


class slow:
    """Right, and with traffic that need not be: a tile with bank conflicts, and a row that one thread walks along."""

    transpose_tiled = {"tile[(j + k) * WIDTH": "tile[(j + k) * TILE", "tile[i * WIDTH": "tile[i * TILE"}
    row_sum = {
        "range(t, columns, THREADS)": "range(t * 4, columns, 4 * THREADS)",
        "total += x[row, column]": "for k in range(column, min(column + 4, columns)):\n            total += x[row, k]",
    }


class off_by_one:
    """A guard that lets one thread too many in, a last round that is left out, and a window without its last pixel."""

    add_kernel = {"i < n": "i <= n"}
    shift_kernel = {"shared[t - 1]": "shared[t]"}
    row_sum = {"while half > 0": "while half > 1"}
    fused_bias_relu_pool = {"range(4)": "range(3)"}


class another_way:
    """Right, by other ways: strides of a grid, a wider tile, the sums of warps, two comparisons."""

    add_kernel = {
        "    i = jit.grid(1)\n": "    for i in range(jit.grid(1), n, jit.gridsize(1)):\n",
        "    if i < n:\n        out": "        out",
    }
    shift_kernel = {"t == 0": "not t"}
    transpose_tiled = {"TILE * WIDTH)": "TILE * (WIDTH + 4))", "* WIDTH +": "* (WIDTH + 4) +"}
