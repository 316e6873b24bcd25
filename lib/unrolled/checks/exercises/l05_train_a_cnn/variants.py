"""Variants of lesson 05: activations, frozen layers, balanced batches, Nesterov, AdamW, wrong labels, confusion."""

from __future__ import annotations

from unrolled.checks.exercises.l05_train_a_cnn import batches, exercises, optimizer_steps, training_variants
from unrolled.checks.exercises.l05_train_a_cnn.exercises import adam_case, by_hand
from unrolled.checks.exercises.l05_train_a_cnn.training import Matrix, median_accuracy
from unrolled.checks.spec import Draw, Spec, case, normal, random_case, variant

*_shorter, _longest = exercises.sequential_forward.cases

sequential_forward_activations = variant(
    exercises.sequential_forward,
    reference=training_variants.activations,
    cases=[*_shorter, case("no layer at all", layers=(), x=normal(2, 3), training=False), _longest],
    hints=(
        "What leaves one layer enters the next, as ever. But keep what came before: a list that grows by one item a "
        "layer.",
        "The list begins with x. Its last item is always what the next layer gets, so kept[-1] is all you need to "
        "remember. In the end it has one item more than there are layers. Pass `training` on.",
        "kept = [x]\n"
        "for layer in layers:\n"
        "    kept.append(what this layer makes of the last item, told whether this is training)\n"
        "return kept",
    ),
    mistakes=training_variants.ACTIVATIONS_MISTAKES,
)


def watched(rng: object) -> tuple[training_variants.Watched, ...]:
    """Make four matrices, any part of which gives another result in any other order."""
    return tuple(training_variants.Watched(Matrix(weight)) for weight in (*exercises.STEPS, [[1, 0], [2, 1]]))


sequential_backward_frozen = variant(
    exercises.sequential_backward,
    reference=training_variants.frozen_backward,
    cases=[
        by_hand(
            "four layers, the first is frozen",
            layers=Draw(watched),
            grad=[[3, 1]],
            frozen=1,
        ),
        random_case("matrix, tanh, matrix; none is frozen", training_variants.frozen_layers(2, lambda count: 0)),
        random_case("nine layers, four are frozen", training_variants.frozen_layers(5, lambda count: 4)),
        random_case("all but the last are frozen", training_variants.frozen_layers(3, lambda count: count - 1)),
        random_case("all are frozen: nothing to do", training_variants.frozen_layers(2, lambda count: count)),
    ],
    hints=(
        "The last layer was closest to the loss, so it is the first to be asked. Each gets what the layer after it "
        "returned. Who needs a gradient from a frozen layer? Nobody: all layers before it are frozen as well.",
        "layers[frozen:] are those that learn; reversed(...) goes through them from the end. What the last of them "
        "returns is the gradient by what comes into layer number `frozen`. If none learns, that is grad itself.",
        "for layer in (the layers that learn, the last one first):\n    grad = layer.backward(grad)\nreturn grad",
    ),
    mistakes=training_variants.FROZEN_MISTAKES,
    compare=training_variants.frozen_left_alone,
)


# `data.minibatches` is no answer: class by class it is a good way to begin.
minibatches_balanced = Spec(
    reference=training_variants.balanced_batches,
    cases=[
        random_case("12, 12 and 12 images, 3 of each class at a time", training_variants.unbalanced((12, 12, 12), 3)),
        random_case("30, 9 and 21 images, 3 of each class at a time", training_variants.unbalanced((30, 9, 21), 3)),
        random_case("25 and 14 images, 4 of each class at a time", training_variants.unbalanced((25, 14), 4)),
        random_case(
            "ten classes, 1 of each at a time", training_variants.unbalanced((9, 8, 7, 9, 8, 7, 9, 8, 7, 9), 1)
        ),
        random_case("the rarest class is used up by one batch", training_variants.unbalanced((40, 6, 40), 6)),
        random_case("any numbers", training_variants.any_unbalanced),
    ],
    points=2,
    hints=(
        "Shuffle indices, not images, and each class by itself. Then cut a piece of the same length from each class, "
        "and put the pieces together.",
        "np.unique(labels) are the classes, np.flatnonzero(labels == label) the places of one of them; shuffle those "
        "with rng.permutation. The shortest of these arrays says how many batches there are: min(...) // per_class. "
        "np.concatenate puts pieces together.",
        "rng = np.random.default_rng(seed)\n"
        "orders = [(the places of this label, shuffled) for label in np.unique(labels)]\n"
        "for batch in range(how many batches the shortest order gives):\n"
        "    piece = slice(batch * per_class, (batch + 1) * per_class)\n"
        "    chosen = np.concatenate([order[piece] for order in orders])\n"
        "    yield images[chosen], (their labels)",
    ),
    compare=training_variants.balanced_and_shuffled,
    call=batches.three_epochs,
)


_first, _second, *_more = exercises.momentum_step.cases

momentum_step_nesterov = variant(
    exercises.momentum_step,
    reference=optimizer_steps.nesterov_update,
    cases=[_first, by_hand(_second.name, **{**_second.arguments, "parameters": [0.62, 2.76]}), *_more],
    hints=(
        "The ball looks where its velocity will carry it next, and already takes that into account. Only the step is "
        "new; the velocity is that of plain momentum.",
        "First the gradient, with weight_decay times the parameters on top. Then the new velocity: momentum times the "
        "old one plus that gradient. The step goes along the gradient plus momentum times the new velocity. All are "
        "arrays of one shape; make new ones.",
        "gradient = gradient + (the part for weight decay)\n"
        "velocity = momentum * velocity + gradient\n"
        "ahead = gradient + (what the new velocity will add next time)\n"
        "return parameters - learning_rate * ahead, velocity",
    ),
    mistakes=optimizer_steps.NESTEROV_MISTAKES,
)


_first, _second, _late, _ = exercises.adam_step.cases

adam_step_decoupled = variant(
    exercises.adam_step,
    reference=optimizer_steps.decoupled_update,
    cases=[
        case(_first.name, **_first.arguments, weight_decay=0.5),
        by_hand(_second.name, **{**_second.arguments, "parameters": [0.85, 2.0], "weight_decay": 0.5}),
        adam_case(
            "no gradient, only decay", 3, [4, -2, 1], [0] * 3, [0] * 3, [1] * 3, learning_rate=0.5, weight_decay=0.1
        ),
        case("step 1000, the default rate and decay", **_late.arguments),
        random_case(
            "as it comes", lambda rng: {**optimizer_steps.any_adam(rng), "weight_decay": rng.uniform(0.05, 0.9)}
        ),
    ],
    hints=(
        "Two things happen to a weight, side by side: Adam's step along m / sqrt(v), and a pull towards 0. The pull "
        "never goes into the means, so a weight with large gradients is pulled as much as one with small ones.",
        "m becomes beta1 * m + (1 - beta1) * gradient, and v the same with beta2 and gradient**2. For the step alone "
        "divide them by 1 - beta1**t and 1 - beta2**t. Then the parameters lose learning_rate times (the step plus "
        "weight_decay times the parameters). Return m and v without the correction.",
        exercises.NEW_MEANS + "step = m_hat / (np.sqrt(v_hat) + epsilon)\n"
        "return (the parameters, less the rate times step and decay), m, v",
    ),
    mistakes=optimizer_steps.DECOUPLED_MISTAKES,
)


evaluate_confusion = variant(
    exercises.evaluate,
    reference=training_variants.confusion,
    cases=[
        random_case("40 images, 8 at a time", lambda rng: training_variants.mistaken(rng, 40, 8)),
        random_case("50 images, 16 at a time", lambda rng: training_variants.mistaken(rng, 50, 16)),
        random_case("10 images, room for 64", lambda rng: training_variants.mistaken(rng, 10, 64)),
        random_case("a class that no image has", lambda rng: training_variants.mistaken(rng, 30, 7, absent=True)),
        random_case("any number", training_variants.any_mistaken),
    ],
    hints=(
        "Make a table of zeros, go through the images a batch at a time, and add each image to the field that its row "
        "and column name. A pair may come many times in one batch.",
        "The first scores (n, classes) say how large the table is; it holds whole numbers, np.zeros((classes, "
        "classes), np.int64). np.add.at(counts, (rows, columns), 1) adds 1 for every pair, also for one that comes "
        "twice; counts[rows, columns] += 1 would not.",
        exercises.SCORES_BY_BATCH + "    if start == 0:\n"
        "        counts = np.zeros((scores.shape[1], scores.shape[1]), np.int64)\n"
        "    np.add.at(counts, (known, scores.argmax(axis=1)), 1)",
    ),
    mistakes=training_variants.CONFUSION_MISTAKES,
)


AT_LEAST = 0.88
BY_HEART = (
    "it learns, but not far enough. Nearly every third label is wrong: trained for long, a network learns those by "
    "heart, too. Take fewer epochs, or weight decay, or dropout; and does each epoch visit all images?"
)

# `network.fit` is not among the answers, as in `train`.
train_noisy = variant(
    exercises.train,
    reference=training_variants.neighbours_vote,
    cases=[
        random_case(
            "disguised digits, 30 % wrong labels, three seeds, median accuracy",
            lambda rng: training_variants.noisy_digits(rng, 1300, 497),
        )
    ],
    hints=(
        "The loop is the usual one: epochs, mini-batches in them, four lines inside. What is new is when to stop. The "
        "right labels agree with each other, so they are learned first; the wrong ones have to be learned one by one.",
        "Eight epochs with new_network(seed), nn.Adam(0.002) and batches of 32 will do. A network with nn.Dropout(0.5) "
        "before each nn.Linear learns more slowly, and may go on for 16 or more.",
        exercises.training_loop(epochs=8),
    ),
    compare=median_accuracy(AT_LEAST, BY_HEART),
)
