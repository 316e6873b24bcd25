"""Lesson 13: a step and an epoch without Python, training against the clock, what each cause gains, an own network."""

from dataclasses import replace

import numpy as np

from unrolled import data, kernels, nn, ops
from unrolled.checks.exercises.l13_capstone import against_the_clock, factors, own, steps
from unrolled.checks.spec import Budget, Spec, Speed, gpu_case, random_case, random_gpu_case

CAPTURED = Budget(made=0, graphs=3, transfers=0, synchronizations=2)  # those of `graphs.replayed`
TWICE = replace(CAPTURED, graphs=2)

capturable_step = Spec(
    reference=steps.step,
    allows=(kernels.matmul,),
    cases=[
        gpu_case("captured once, launched on three batches", CAPTURED, **steps.buffers(4, 3, 2)),
    ],
    domain=random_gpu_case("any size, and a rate that the host changes", steps.any_buffers, TWICE, anywhere=True),
    points=3,
    hints=(
        "Go through eager_step line by line. Which line makes a new array, and which one needs a number on the host? "
        "Each of them becomes one or more lines that write into an array that is there already.",
        "error (N, M) and grad (K, M) are where the two products go: matmul(x, weight, out=error). After that all is "
        "in place: -=, /=, *=, +=. The rate is an array (1,), and an array can be multiplied by it where it lies.",
        "matmul(x, weight, out=error)\n"
        "error -= target\n"
        "matmul(x.T, error, out=grad)\n"
        "grad /= len(x)\n"
        "grad *= ...\n"
        "velocity *= ...; velocity -= grad; weight += velocity\n"
        "... and the rate",
    ),
    mistakes=steps.STEP_MISTAKES,
    call=steps.under_capture,
    compare=steps.compare,
    on_real=False,  # its results lie in the buffers, which a real GPU would be sent as copies
)


A_STEP = 2  # launches
FEW = Budget(  # three a step would be one launch too many, with as few for the start as there can be
    launches=A_STEP * steps.STEPS + 23,
    because="two a step, and some for the start",
    graphs=1,
    synchronizations=2,
    made=0,
)

replayed_epoch = Spec(
    reference=steps.replayed,
    allows=(kernels.matmul,),
    numbers={"launches": A_STEP},
    cases=[
        gpu_case("eight steps, each on one image", FEW, **steps.epoch(1, 2, 2)),
    ],
    domain=random_gpu_case("any size, any steps", steps.any_epoch, replace(FEW, launches=A_STEP * steps.MOST + 30)),
    points=3,
    hints=(
        "Put everything that a step needs into the graph, the choice of its batch as well. Then nothing is left to do "
        "between two launches.",
        "place (1,) says which row of order comes next, and it is an array, so the graph can add 1 to it. take(order, "
        "place, axis=0, out=rows) fetches that row, take(images, rows[0], axis=0, out=x) the batch. `captured` runs "
        "the program once: afterwards the weight and the place have to be put back.",
        "def program():\n"
        "    xp.take(order, place, axis=0, out=rows)\n"
        "    ... images and targets of rows[0] into x and target, then descend, then the place\n"
        "graph = captured(program, stream)\n"
        "trained[...], place[...] = ...\n"
        "for _ in range(len(order)):\n"
        "    ...",
    ),
    mistakes=steps.EPOCH_MISTAKES,
    speed=Speed(
        baseline=steps.eager,
        inputs=steps.epoch(8, 64, 10, steps=256, images=1024),
        at_least=3,
        against="the same steps from Python, on the GPU",
        gpu=True,
    ),
)

time_to_accuracy = Spec(
    reference=against_the_clock.recipe,
    allows=(nn, data.minibatches, ops.softmax_cross_entropy),
    numbers={"accuracy": 100 * against_the_clock.ASKED},
    cases=[random_case("digits in disguise, three seeds", against_the_clock.small_digits)],
    points=4,
    hints=(
        "First get it right, with as many epochs as it takes. Then ask where the seconds go, and which epochs still "
        "gain something.",
        "A larger batch takes fewer steps and allows a larger rate. A rate that falls to nothing makes the last epochs "
        "count. Images shifted by a pixel at random are new images for free: np.roll each batch over the last two "
        "axes, by a shift of its own.",
        "network, optimizer = digits_network(seed), nn.Adam(...)\n"
        "for step in range(steps):\n"
        "    rows = ...\n"
        "    network.loss_and_scores(images[rows], labels[rows])\n"
        "    optimizer.step(network.parameters, network.gradients, 1 - step / steps)\n"
        "return network.parameters",
    ),
    call=against_the_clock.timed,
    compare=against_the_clock.compare,
    limit=90.0,
    leaderboard=True,
)

ablation = Spec(
    reference=factors.turned_off_alone,
    cases=[
        random_case("code and batch", factors.machine, ["code", "batch"]),
        random_case("as many causes as come", factors.any_machine),
        random_case(
            "real work, measured again",
            lambda rng: {"machine": factors.Work(rng.standard_normal(2**18).astype(np.float32))},
        ),
    ],
    points=3,
    hints=(
        "A cause's factor is the seconds without it over the seconds with everything. All the other causes stay on. "
        "And one run of each says little: some runs are disturbed, and how much changes over time.",
        "run() has everything on, and run(**{cause: False}) has one cause off. Take a ratio of two runs that follow "
        "each other, several times, and then the median of the ratios.",
        "for _ in range(9):\n"
        "    for cause in causes:\n"
        "        everything = run()\n"
        "        ratios[cause].append(... / everything)\n"
        "return {cause: float(np.median(...)) ...}",
    ),
    call=factors.handed_out,
    compare=factors.compare,
)

own_network = Spec(
    reference=own.stand_in,
    allows=(data, kernels, nn, ops),
    cases=[random_case("both versions, trained in turns", own.turns)],
    points=1,
    hints=(
        'Begin with a network and a training that work, however slowly. Call it "before", and do not touch it again.',
        'With "before" and with "after" the function returns the same array: what network.forward gives for '
        "test_images after some steps. Weights and whatever else is drawn come from the seed.",
        'slow = version == "before"\n'
        "network, optimizer = ...  # from the seed\n"
        "for step in range(...):\n"
        "    ... if slow else ...\n"
        "return network.forward(test_images)",
    ),
    numbers={"faster": own.FASTER},
    call=own.in_turns,
    compare=own.compare,
    limit=60.0,
)
