"""The variant of lesson 04: the loss of labels that are smoothed."""

import numpy as np

from unrolled.checks.exercises.l01_matrix_parallelism.exercises import array
from unrolled.checks.exercises.l04_backprop import dense_gradients, exercises
from unrolled.checks.spec import case, normal, random_case, variant

softmax_cross_entropy_smoothing = variant(
    exercises.softmax_cross_entropy,
    reference=dense_gradients.smoothed_cross_entropy,
    cases=[
        case(
            "probabilities 1/4, 3/4 and targets 0.1, 0.9",
            scores=np.log(array([1, 3])),
            labels=np.array([1]),
            smoothing=0.2,
        ),
        case("two equal scores: loss log 2", scores=array([0, 0]), labels=np.array([0]), smoothing=0.2),
        case("four samples, the smoothing left at 0.1", scores=normal(4, 5), labels=np.array([0, 4, 2, 2])),
        case("no smoothing", scores=normal(3, 4), labels=np.array([3, 0, 1]), smoothing=0.0),
        case("all smoothing: the labels do not count", scores=normal(3, 4), labels=np.array([3, 0, 1]), smoothing=1.0),
        case("scores of 1,000", scores=array([1000, 998, 999], [-1, 0, 1]), labels=np.array([1, 2]), smoothing=0.3),
        case("scores of -1,000", scores=array([-1000, -998], [3, 2]), labels=np.array([1, 0]), smoothing=0.3),
        case("a wrong class with probability 0", scores=array([200, 0], [0, 1]), labels=np.array([0, 1])),
        case("the right class with probability 0", scores=array([200, 0], [0, 1]), labels=np.array([1, 1])),
    ],
    domain=random_case("any scores", dense_gradients.any_smoothed),
    hints=(
        "The loss is the sum over the classes of target times -log(p). Write -log(p_m) as log(sum) - s_m. The targets "
        "add up to 1, so log(sum) comes out of the sum, once; what is left is a mean of scores, weighed by targets.",
        "shifted (N, M) = scores minus the maximum of each row. Of it you need two numbers a row: the score of the "
        "right class, with weight 1 - smoothing, and the mean of all, with weight smoothing. The gradient is "
        "(probabilities - targets) / N, with smoothing / M in every target and 1 - smoothing more at the label.",
        "shifted = scores - (the largest of each row, as a column)\n"
        "exponentials = np.exp(shifted)\n"
        "sums = exponentials.sum(axis=1)\n"
        "rows = np.arange(len(scores))\n"
        "chosen = (1 - smoothing) * shifted[rows, labels] + smoothing * (the mean of each row of shifted)\n"
        "loss = (np.log(sums) - chosen).mean()\n"
        "grad = exponentials / sums[:, None] - (what every class has as its target)\n"
        "grad[rows, labels] -= 1 - smoothing\n"
        "return loss, (grad, divided by what the mean divided by)",
    ),
    mistakes=dense_gradients.SMOOTHING_MISTAKES,
)
