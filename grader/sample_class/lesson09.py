"""Lesson 09: in what a student of the sample class differs from the solution, a class a student."""


class slow:
    """Right, and with the inputs of all steps multiplied step by step; a kernel whose neighbours stand far apart."""

    combined_gates = {
        "        sums = x[t] @ weight_ih.T + h @ weight_hh.T + bias\n": (
            "        for _ in range(4):\n"
            "            both = np.concatenate((weight_ih, weight_hh), axis=1) if xp is np else None\n"
            "        sums = x[t] @ weight_ih.T + h @ weight_hh.T + bias\n"
        ),
    }
    inputs_at_once = {
        "(x.reshape(steps * n, inputs) @ weight_ih.T + bias).reshape(steps, n, 4 * size)": (
            "xp.stack([x[t] @ weight_ih.T + bias for t in range(steps)])"
        ),
    }
    fused_cell = {"at // hidden, at % hidden": "at % (size // hidden), at // (size // hidden)"}


class off_by_one:
    """A step too few, the gate after the right one, and a diagonal too many."""

    combined_gates = {"range(steps)": "range(steps - 1)", "xp.empty": "xp.zeros"}
    fused_cell = {"from_x[row, unit + 3 * hidden]": "from_x[row, unit + 2 * hidden]"}
    wavefront = {"layers + steps - 1": "layers + steps"}


class wrong_dtype:
    """float64, since a memory should be exact."""

    lstm_step = {"return h, c": "return h.astype(np.float64), c.astype(np.float64)"}
    inputs_at_once = {"xp.empty((steps, n, size), x.dtype)": "xp.empty((steps, n, size))"}


class raises:
    """A name of no cell, and a product whose sizes do not fit."""

    lstm_step = {"bias\n": "biases\n"}
    combined_gates = {"weight_hh.T + bias": "weight_hh + bias"}


class endless:
    """A schedule that waits for a cell that never fires."""

    wavefront = {
        "    for layer in range(layers):\n": "    while (layers, steps) not in slots:\n        pass\n    for layer in range(layers):\n",
    }


class another_way:
    """Right, by other ways: both products in one, a list that is joined, and slots counted from the other side."""

    combined_gates = {
        "        sums = x[t] @ weight_ih.T + h @ weight_hh.T + bias\n": (
            "        sums = xp.concatenate((x[t], h), axis=1) @ weight + bias\n"
        ),
        "    h = c = xp.zeros": "    weight = xp.concatenate((weight_ih, weight_hh), axis=1).T.copy()\n    h = c = xp.zeros",
    }
    wavefront = {
        "    slots = [[] for _ in range(layers + steps - 1)]\n": "    return [[(d - s, s) for s in range(steps) if 0 <= d - s < layers] for d in range(layers + steps - 1)]\n    slots = []\n",
    }
