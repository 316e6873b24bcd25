"""The variant of lesson 05: mini-batches that hold as many images of each class."""

from __future__ import annotations

from unrolled.checks.exercises.l05_train_a_cnn import balanced, batches
from unrolled.checks.spec import Spec, random_case

# `data.minibatches` is no answer: class by class it is a good way to begin.
minibatches_balanced = Spec(
    reference=balanced.balanced_batches,
    cases=[
        random_case("12, 12 and 12 images, 3 of each class at a time", balanced.unbalanced((12, 12, 12), 3)),
        random_case("30, 9 and 21 images, 3 of each class at a time", balanced.unbalanced((30, 9, 21), 3)),
        random_case("25 and 14 images, 4 of each class at a time", balanced.unbalanced((25, 14), 4)),
        random_case("ten classes, 1 of each at a time", balanced.unbalanced((9, 8, 7, 9, 8, 7, 9, 8, 7, 9), 1)),
        random_case("the rarest class is used up by one batch", balanced.unbalanced((40, 6, 40), 6)),
        random_case("any numbers", balanced.any_unbalanced),
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
    compare=balanced.balanced_and_shuffled,
    call=batches.three_epochs,
)
