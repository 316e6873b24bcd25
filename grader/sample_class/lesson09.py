"""Lesson 09: in what a student of the sample class differs from the solution, a class a student."""


class slow:
    """Right, with a product for each gate, or for each step's inputs; a kernel whose neighbours stand far apart."""

    combined_gates = {
        "x[t] @ weight_ih.T + h @ weight_hh.T + bias": (
            "bias + xp.concatenate(\n"
            "            [x[t] @ weight_ih[k : k + size].T + h @ weight_hh[k : k + size].T\n"
            "             for k in range(0, 4 * size, size)],\n"
            "            axis=1,\n"
            "        )"
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


class another_way:
    """Right, by other ways: both products in one, and slots that are counted out one after the other."""

    combined_gates = {
        "    h = c = xp.zeros((n, size), x.dtype)\n": (
            "    h = c = xp.zeros((n, size), x.dtype)\n"
            "    weight = xp.concatenate((weight_ih, weight_hh), axis=1).T.copy()\n"
        ),
        "x[t] @ weight_ih.T + h @ weight_hh.T": "xp.concatenate((x[t], h), axis=1) @ weight",
    }
    wavefront = {
        "    for layer in range(layers):\n"
        "        for step in range(steps):\n"
        "            slots[layer + step].append((layer, step))\n": (
            "    for d, slot in enumerate(slots):\n"
            "        slot.extend((d - step, step) for step in range(steps) if 0 <= d - step < layers)\n"
        ),
    }
