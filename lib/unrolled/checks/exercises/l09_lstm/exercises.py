"""Lesson 09: the step of an LSTM, and the same multiplications in fewer and fewer launches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from operator import index
from typing import Any

import numpy as np

from unrolled import ops
from unrolled.checks.compare import Mismatch
from unrolled.checks.domain import edge_size
from unrolled.checks.exercises.l04_backprop.gradients import named
from unrolled.checks.exercises.l09_lstm import sequences
from unrolled.checks.mistakes import Function, Mistake, given, result
from unrolled.checks.spec import Budget, Case, Inputs, Spec, Speed, case, gpu_case, random_case, random_gpu_case
from unrolled.device import Array


def changed_weights(change: Callable[[Array], Array]) -> dict[str, Any]:
    """Return the changes of an answer that makes `change(rows)` of each of the weights."""
    return {
        "weight_ih": lambda weight_ih: change(weight_ih),
        "weight_hh": lambda weight_hh: change(weight_hh),
        "bias": lambda bias: change(bias),
    }


def reordered(*order: int) -> dict[str, Any]:
    """Return the changes of an answer that takes the blocks of the weights in another order."""
    return changed_weights(lambda rows: np.concatenate([np.split(rows, len(order))[k] for k in order]))


OPEN, SHUT = 50, -50  # sums for which a gate is 1 and 0, to rounding

BY_HAND = {
    "x": np.array([[1]], np.float32),
    "h": np.array([[0]], np.float32),
    "c": np.array([[2]], np.float32),
    "weight_ih": np.array([[OPEN], [SHUT], [0.5], [0]], np.float32),
    "weight_hh": np.zeros((4, 1), np.float32),
    "bias": np.zeros(4, np.float32),
}


FAR = {name: array * np.float32(4) for name, array in BY_HAND.items()} | {
    "x": np.array([[-4]], np.float32),
    "bias": np.full(4, 100, np.float32),
}
"""Sums of -700, 900, 92 and 100, of which exp(sum) is infinite or 0 in float32, and a large c."""


def _of_the_cell(says: str, **changes: Any) -> Mistake:
    """Return the mistake of a cell with these changes."""
    return Mistake(
        says,
        lambda x, h, c, weight_ih, weight_hh, bias: sequences.cell(
            x @ weight_ih.T + h @ weight_hh.T + bias, c, **changes
        ),
    )


lstm_step = Spec(
    reference=ops.lstm_step,
    allows=(ops.sigmoid, ops.tanh),
    cases=[
        case("everything is forgotten, and 0.5 gets in", **BY_HAND),
        case("two samples, three inputs, four units", **sequences.one_step(2, 3, 4)),
        case("in float64, and how fast h and c change", **sequences.one_step(3, 4, 2, np.float64)),
        case("sums far from 0", **FAR),
        gpu_case("on the GPU", Budget(), **sequences.one_step(5, 4, 3)),
    ],
    domain=random_case("any size", sequences.any_step),
    points=3,
    hints=(
        "First all sums in one go: the input's part, the part of the last output, and the bias. Then four blocks of H "
        "columns, and each goes through its function.",
        "sums is (N, 4 * H); with H = weight_hh.shape[1], the block of gate number k is sums[:, k * H : (k + 1) * H], "
        "and the order is i, f, g, o. sigmoid for i, f and o, tanh for g.",
        "sums = x @ weight_ih.T + h @ ... + bias\n"
        "i, f, g, o = (sums[:, k * size : (k + 1) * size] for k in range(4))\n"
        "c = ops.sigmoid(f) * c + ...\n"
        "h = ops.sigmoid(o) * ...",
    ),
    mistakes=(
        result("you return c before h: h comes first", lambda y: (y[1], y[0], *y[3:1:-1])),
        given("the gates are in the order i, f, o, g: the third block is g, the fourth o", **reordered(0, 1, 3, 2)),
        given("the gates are in the order f, i, g, o: the first block is i, the second f", **reordered(1, 0, 2, 3)),
        given("the gates are in the order i, g, f, o: the second block is f, the third g", **reordered(0, 2, 1, 3)),
        given(
            "the four gates of a unit stand in blocks, H columns apart, and not side by side",
            **changed_weights(
                lambda rows: np.reshape(rows, (-1, 4, *rows.shape[1:])).swapaxes(0, 1).reshape(rows.shape)
            ),
        ),
        given("the bias is missing", bias=lambda bias: 0 * bias),
        given("the last output has no part in it: h @ weight_hh.T belongs to the sums", h=lambda h: 0 * h),
        given("what c held has no part in it: c is f * c + i * g", c=lambda c: 0 * c),
        _of_the_cell("a tanh is missing: h is o * tanh(c)", out_by=np.asarray),
        _of_the_cell("h is made of the old c: first the new c, then h from it", old=True),
        _of_the_cell("g goes through a tanh, not through a sigmoid: it may be below 0", g_by=ops.sigmoid),
    ),
    call=sequences.with_slopes,
    compare=sequences.compare_step,
)


LAUNCHES = 30  # of a step: the formulas as they are written take more, two products and whole blocks half as many


def few(steps: int, products: int) -> Budget:
    """Return the budget of so many steps with so many products in all."""
    return Budget(launches=LAUNCHES * steps + 10, products=products, float64=0)


def sequence_cases(products: int, more: int = 0) -> list[Case]:
    """Return the cases of a whole sequence: so many products a step, and so many besides."""
    return [
        case("one step, NumPy", **sequences.layer(1, 2, 3, 2)),
        gpu_case("six steps, GPU", few(6, 6 * products + more), **sequences.layer(6, 4, 3, 2)),
    ]


ANY_SEQUENCE = random_case("any size, NumPy", sequences.any_sequence)


def _in_each_step(says: str, change: Function = lambda *sums: sums, **changes: Any) -> Mistake:
    """Return the mistake of a cell with these changes in each step, or of change(i, f, g, o) for the gates' sums."""
    return Mistake(says, partial(sequences.through_steps, change=change, **changes))


SEQUENCE_MISTAKES = (
    given("the last output has no part in it: h @ weight_hh.T", weight_hh=lambda weight_hh: 0 * weight_hh),
    _in_each_step("a tanh is missing: h is o * tanh(c)", out_by=np.asarray),
    _in_each_step("h is made of the old c: first the new c, then h from it", old=True),
    _in_each_step("g goes through a tanh, not through a sigmoid: it may be below 0", g_by=ops.sigmoid),
    _in_each_step("o has no part in it: h is o * tanh(c)", lambda i, f, g, o: (i, f, g, np.inf + o)),
    _in_each_step("i stands where o belongs: h is o * tanh(c)", lambda i, f, g, o: (i, f, g, i)),
    _in_each_step("i has no part in it: c is f * c + i * g", lambda i, f, g, o: (np.inf + i, f, g, o)),
    _in_each_step("f has no part in it: c is f * c + i * g", lambda i, f, g, o: (i, np.inf + f, g, o)),
    _in_each_step("what c held has no part in it: c is f * c + i * g", lambda i, f, g, o: (i, f - np.inf, g, o)),
    given("each step reads the first one's input: x[t]", x=lambda x: x[:1].repeat(len(x), axis=0)),
    result(
        "only the first step is right: h and c of a step go into the next one",
        lambda y: np.ma.MaskedArray(y, np.arange(len(y))[:, None, None] + 0 * y > 0),
    ),
    result("this is the last output only: the outputs of all steps are asked, (T, N, H)", lambda y: y[-1]),
    result("the axes are (N, T, H): the steps come first", lambda y: y.swapaxes(0, 1)),
    given("the bias is missing", bias=lambda bias: 0 * bias),
    given("the bias is in it twice: once with the inputs, and once more in each step", bias=lambda bias: 2 * bias),
    given("the gates are in the order i, f, o, g: the third block is g, the fourth o", **reordered(0, 1, 3, 2)),
    given("the gates are in the order f, i, g, o: the first block is i, the second f", **reordered(1, 0, 2, 3)),
    given("the steps go from the last to the first", x=lambda x: x[::-1]),
)

combined_gates = Spec(
    reference=sequences.two_products,
    allows=(ops.sigmoid, ops.tanh),
    numbers={"launches": LAUNCHES},
    cases=sequence_cases(2),
    domain=ANY_SEQUENCE,
    points=2,
    hints=(
        "The four blocks of the weights stand below each other already. A product with all of them gives all four "
        "sums side by side.",
        "In each step: x[t] @ weight_ih.T is (N, 4 * H), and h @ weight_hh.T too. Cut their sum into blocks as in "
        "lstm_step. One sigmoid over all 4 * H columns costs less than three over a part, even if one block of it is "
        "thrown away.",
        "for t in range(steps):\n"
        "    sums = x[t] @ ... + h @ ... + bias\n"
        "    gates, g = ops.sigmoid(sums), ops.tanh(sums[:, 2 * size : 3 * size])\n"
        "    c = gates[:, size : 2 * size] * c + ...\n"
        "    y[t] = h = ...",
    ),
    mistakes=SEQUENCE_MISTAKES,
    speed=Speed(
        baseline=sequences.by_gate,
        inputs=sequences.layer(400, 1, 28, 64),
        at_least=1.15,
        against="eight products a step, for a sequence of 400 steps",
        advice=(
            "weights that are joined or turned anew in each step, three sigmoids where one does, and a copy of each "
            "block cost more than the products here"
        ),
    ),
)

inputs_at_once = Spec(
    reference=sequences.all_inputs,
    allows=(ops.sigmoid, ops.tanh),
    cases=sequence_cases(1, more=1),
    domain=ANY_SEQUENCE,
    points=2,
    hints=(
        "What the input gives does not depend on any step before. So it can be computed for all steps, before the "
        "first one.",
        "A product takes rows: x.reshape(steps * n, inputs) has a row for each sample of each step. What comes out is "
        "reshaped to (steps, n, 4 * H), and the bias can be added to all of it at once.",
        "sums = (x.reshape(...) @ weight_ih.T + bias).reshape(steps, n, -1)\n"
        "for t in range(steps):\n"
        "    now = sums[t] + h @ ...\n"
        "    ... as before",
    ),
    mistakes=(
        *SEQUENCE_MISTAKES,
        given(
            "the product's rows are step by step: reshape them to (steps, n, 4 * H), and not to (n, steps, 4 * H)",
            x=lambda x: x.reshape(x.shape[1], x.shape[0], x.shape[2]).swapaxes(0, 1),
        ),
    ),
    speed=Speed(
        baseline=sequences.two_products,
        inputs=sequences.layer(60, 2, 2048, 64),
        at_least=1.5,
        against="two products a step, for 60 steps with 2,048 inputs",
        advice=(
            "weight_ih is to be read once, in a single product for all steps: of an x with three axes NumPy makes a "
            "product for each step, so reshape it to T * N rows"
        ),
    ),
)

fused_cell = Spec(
    reference=sequences.point_wise,
    cases=[
        gpu_case("one sample, one unit", sequences.ODD, **sequences.sums(1, 1)),
        gpu_case("four samples, 64 units", sequences.ONCE, **sequences.sums(4, 64)),
        gpu_case("three samples, 96 units", sequences.ONCE, **sequences.sums(3, 96)),
        gpu_case("sums far from 0", sequences.ODD, **sequences.FAR),
    ],
    domain=random_gpu_case("any size", sequences.any_sums, sequences.ODD),
    points=3,
    hints=(
        "A thread for each unit of each sample. It needs four sums, one from each block, and the c before; it writes "
        "two numbers.",
        "With row and unit, the sums of i are from_x[row, unit] + from_h[row, unit] + bias[unit], those of f the same "
        "at unit + hidden, of g at unit + 2 * hidden, of o at unit + 3 * hidden. A sigmoid of z is "
        "ONE / (ONE + cp.exp(-z)).",
        "i = from_x[row, unit] + from_h[row, unit] + bias[unit]\n"
        "f = from_x[row, unit + hidden] + ...\n"
        "... the others in the same way\n"
        "now = c[row, unit] / (ONE + cp.exp(-f)) + ...\n"
        "c_new[row, unit] = now\n"
        "h_new[row, unit] = cp.tanh(now) / ...",
    ),
    mistakes=sequences.FUSED_MISTAKES,
    compare=named("h", "c"),
    speed=Speed(
        baseline=sequences.one_by_one,
        inputs=sequences.sums(8, 128),  # small, since the judge's blocks hold the copies
        at_least=1.25,
        against="a launch for each operation, for 8 samples and 128 units",
        gpu=True,
        advice="one launch, a thread for each unit, and each number is read once",
    ),
)


Cell = tuple[int, int]
Schedule = list[list[Cell]]
NEEDED = {(-1, 0): "the layer below", (0, -1): "the step before"}  # what a cell needs, as the way there
SHAPE = "expected a list of slots, each a list of cells (layer, step)"


def diagonals(layers: int, steps: int) -> Schedule:
    """Return the cells (layer, step) of each slot: in slot d those with layer + step = d."""
    return [
        [(layer, d - layer) for layer in range(layers) if 0 <= d - layer < steps] for d in range(layers + steps - 1)
    ]


def judge_schedule(got: Any, expected: Schedule, inputs: Inputs) -> Mismatch | None:
    """Say what is wrong with a schedule: its form, a cell that is missing or doubled, too early, or too many slots."""
    try:
        slots = [[_cell(cell) for cell in slot] for slot in got]
    except (TypeError, ValueError) as error:
        said = f"{error}" if str(error).startswith("a cell") else f"this is no schedule, but {type(got).__name__}"
        return Mismatch((said, SHAPE))
    layers, steps = inputs["layers"], inputs["steps"]
    wrong = _counted(slots, layers, steps) or _ordered(slots)
    if wrong is None and len(slots) > len(expected):
        wrong = (
            f"valid, and {len(slots)} slots long; {len(expected)} are enough for {layers} layers and {steps} steps: "
            "let all cells fire as soon as what they need is done"
        )
    return None if wrong is None else Mismatch((wrong,))


def _cell(cell: Any) -> Cell:
    layer, step = cell
    if isinstance(layer, bool) or isinstance(step, bool):
        raise TypeError(f"a cell is {cell!r:.60}: whole numbers (layer, step) are expected")
    return index(layer), index(step)


def _counted(slots: Sequence[Sequence[Cell]], layers: int, steps: int) -> str | None:
    """What is wrong with which cells there are."""
    cells = [cell for slot in slots for cell in slot]
    for layer, step in cells:
        if not (0 <= layer < layers and 0 <= step < steps):
            return (
                f"cell ({layer}, {step}) is not among {layers} layers and {steps} steps, counted from 0: a cell is "
                "(layer, step)"
            )
    if twice := [cell for cell in dict.fromkeys(cells) if cells.count(cell) > 1]:
        return f"cell {twice[0]} fires {cells.count(twice[0])} times: once is enough"
    missing = [(layer, step) for layer in range(layers) for step in range(steps) if (layer, step) not in cells]
    if missing:
        return f"{len(missing)} of {layers * steps} cells never fire, the first is {missing[0]}"
    return None


def _ordered(slots: Sequence[Sequence[Cell]]) -> str | None:
    """Which cell fires before what it needs."""
    when = {cell: number for number, slot in enumerate(slots) for cell in slot}
    for (layer, step), slot in when.items():
        for (up, on), what in NEEDED.items():
            needed = layer + up, step + on
            if when.get(needed, -1) >= slot:
                return (
                    f"cell ({layer}, {step}) fires in slot {slot}, and needs {what}, {needed}, which fires in slot "
                    f"{when[needed]}: it has to be done in an earlier slot"
                )
    return None


wavefront = Spec(
    reference=diagonals,
    cases=[
        case("one layer, four steps", layers=1, steps=4),
        case("two layers, three steps", layers=2, steps=3),
        case("four layers, two steps", layers=4, steps=2),
        case("three layers, nine steps", layers=3, steps=9),
    ],
    domain=random_case("any size", lambda rng: {"layers": edge_size(rng, 8), "steps": edge_size(rng, 8)}),
    points=2,
    hints=(
        "A cell can fire in the slot after the later of the two that it needs. Write that number into each square of a "
        "small grid, from the lower left on, and look at what has the same number.",
        "Layer l at step t can fire in slot l + t, counted from 0. The last cell is (layers - 1, steps - 1), so there "
        "are layers + steps - 1 slots.",
        "slots = [[] for _ in range(layers + steps - 1)]\n"
        "for layer in range(layers):\n"
        "    for step in range(steps):\n"
        "        ... which slot gets (layer, step)?",
    ),
    compare=judge_schedule,
)

backward_through_time = Spec(
    reference=sequences.through_time,
    allows=(ops.lstm_step_backward,),
    cases=[
        random_case("one step", sequences.went_forward, 1, 2, 3, 2),
        random_case("nine steps, a gradient from each", sequences.went_forward, 9, 3, 2, 4),
    ],
    domain=random_case("any size", sequences.any_way_back),
    points=3,
    hints=(
        "Go from the last step to the first. Two gradients travel back from step to step: by h and by c. What the loss "
        "says of a step's own output is added to the first.",
        "by_sums, grad_c = ops.lstm_step_backward(grad_y[t] + grad_h, grad_c, gates[t], c[t], c before). weight_ih "
        "gets by_sums.T @ x[t], weight_hh gets by_sums.T @ (the y before), the bias gets the sum over samples, and "
        "the step before gets grad_h = by_sums @ weight_hh.",
        "for t in reversed(range(len(x))):\n"
        "    y_before, c_before = (y[t - 1], c[t - 1]) if t else (zeros, zeros)\n"
        "    by_sums, grad_c = ops.lstm_step_backward(...)\n"
        "    grad_h = by_sums @ weight_hh\n"
        "    grad_ih += ...",
    ),
    mistakes=sequences.BACKWARD_MISTAKES,
    compare=named("grad_weight_ih", "grad_weight_hh", "grad_bias"),
)
