"""unrolled.show: the pictures of lesson 05 say what the training did."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import matplotlib
import numpy as np
import pytest

from unrolled import show
from unrolled.show.confusion import mix_ups
from unrolled.show.images import filter_colours
from unrolled.show.learning_curves import Live
from unrolled.show.optimizer_paths import losses
from unrolled.show.style import styled

RNG = np.random.default_rng(7)
HISTORY = SimpleNamespace(
    loss=[2.0, 1.0, 0.1],
    accuracy=[0.3, 0.7, 1.0],
    validation_loss=[2.1, 1.1, 1.4],
    validation_accuracy=[0.25, 0.6, 0.62],
)
TRAINING_ONLY = SimpleNamespace(loss=[2.0, 1.0], accuracy=[0.3, 0.7], validation_loss=[], validation_accuracy=[])
LABELS = np.array([0, 0, 1, 1, 2, 2, 2])
GUESSES = np.array([0, 1, 1, 1, 0, 1, 1])
BOX = (-4.0, 4.0, -2.0, 2.0)


def bowl(x: Any, y: Any) -> Any:
    return x**2 + 4 * y**2


def descent(rate: float, steps: int = 20) -> np.ndarray:
    points = [np.array([-3.0, 1.0])]
    for _ in range(steps):
        points.append(points[-1] - rate * np.array([2.0, 8.0]) * points[-1])
    return np.array(points)


PATHS = {name: {rate: descent(factor * rate) for rate in (0.1, 1.0)} for name, factor in (("slow", 0.5), ("fast", 1.0))}

PICTURES: dict[str, Callable[[], show.Picture | show.Explorer]] = {
    "learning_curves": lambda: show.learning_curves(HISTORY, title="A title"),
    "learning_curves, one epoch": lambda: show.learning_curves(
        SimpleNamespace(loss=[2.0], accuracy=[0.1], validation_loss=[], validation_accuracy=[])
    ),
    "learning_curves, long": lambda: show.learning_curves(
        SimpleNamespace(
            loss=[0.0] * 99, accuracy=[1.0] * 99, validation_loss=[1e-3] * 99, validation_accuracy=[1.0] * 99
        )
    ),
    "confusion": lambda: show.confusion(LABELS, GUESSES),
    "confusion, no mistake": lambda: show.confusion(LABELS, LABELS),
    "confusion, names": lambda: show.confusion(
        RNG.integers(0, 10, 900),
        RNG.integers(0, 10, 900),
        ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"],
    ),
    "filters": lambda: show.filters(RNG.standard_normal((16, 3, 5, 5))),
    "filters, responses": lambda: show.filters(
        RNG.standard_normal((12, 1, 3, 3)), RNG.random((1, 28, 28)), 1, "Twelve"
    ),
    "optimizer_paths": lambda: show.optimizer_paths(bowl, PATHS, BOX),
}
EVERY = pytest.mark.parametrize("name", PICTURES)


def stills(made: show.Picture | show.Explorer) -> list[show.Picture]:
    if isinstance(made, show.Picture):
        return [made]
    ends = [{name: slider.values[i] for name, slider in made.sliders.items()} for i in (0, -1)]
    return [made.still(), *(made.at(**values) for values in ends)]


@EVERY
def test_fits_the_page_and_speaks(name: str) -> None:
    for picture in stills(PICTURES[name]()):
        width, height = picture.figure.get_size_inches()
        assert width <= 7.5
        assert height <= 7.5
        if any(axes.axison for axes in picture.figure.axes):
            with styled():
                box = picture.figure.get_tightbbox()
            assert min(box.x0, box.y0) > -0.02
            assert box.x1 < width + 0.02
            assert box.y1 < height + 0.02
        assert picture.png().startswith(b"\x89PNG")
        assert picture.alt.endswith(".")
        assert "nan" not in picture.alt


@EVERY
def test_looks_the_same_in_every_session(name: str) -> None:
    state = RNG.bit_generator.state
    plain = stills(PICTURES[name]())[0].png()
    RNG.bit_generator.state = state
    with matplotlib.rc_context({"axes.facecolor": "black", "font.size": 31, "lines.linewidth": 9}):
        assert stills(PICTURES[name]())[0].png() == plain


def test_the_slider_stops_the_training_at_an_epoch() -> None:
    curves = show.learning_curves(HISTORY, epochs=[0, 5, 50])
    assert curves.at(stop=1).alt == (
        "learning curves over epochs 0 to 50. After epoch 5: training loss 1, accuracy 70 %; validation loss 1.1, "
        "accuracy 60 %. The validation loss was lowest, 1.1, at epoch 5."
    )
    assert "After epoch 50: training loss 0.1, accuracy 100 %; validation loss 1.4" in curves.alt
    assert curves.at(stop=0).png() != curves.at(stop=1).png()


def test_curves_without_validation_have_one_line_each() -> None:
    curves = show.learning_curves(TRAINING_ONLY)
    assert "validation" not in curves.alt
    assert "After epoch 2: training loss 1, accuracy 70 %." in curves.alt


@pytest.mark.parametrize(
    ("history", "epochs"),
    [(HISTORY, [1, 2]), (SimpleNamespace(loss=[], accuracy=[], validation_loss=[], validation_accuracy=[]), None)],
)
def test_curves_that_do_not_fit_are_refused(history: Any, epochs: Any) -> None:
    with pytest.raises(ValueError, match="values for"):
        show.learning_curves(history, epochs)


def test_an_epoch_interrupted_before_its_validation_is_left_out() -> None:
    history = SimpleNamespace(**{**vars(HISTORY), "loss": [2.0, 1.0, 0.1, 0.05], "accuracy": [0.3, 0.7, 1.0, 1.0]})
    assert "epochs 1 to 3. After epoch 3: training loss 0.1" in show.learning_curves(history).alt


def test_live_curves_are_drawn_in_one_place(monkeypatch: pytest.MonkeyPatch) -> None:
    updates: list[Any] = []
    live = show.live("now")
    live(None, TRAINING_ONLY)
    assert isinstance(live, Live)
    assert live.picture is not None
    assert "After epoch 2" in live.picture.alt  # nothing is displayed here: this is no notebook
    live._handle = SimpleNamespace(update=updates.append)
    assert live(None, HISTORY) is None, "a callback that returns something true would stop the training"
    assert updates == [live.picture]


def test_confusion_counts_every_pair() -> None:
    counts = np.array([[1, 1, 0], [0, 2, 0], [1, 2, 0]])
    assert mix_ups(counts) == [(2, 1, 2), (0, 1, 1), (2, 0, 1)]
    assert show.confusion(LABELS, GUESSES).alt == (
        "Confusion matrix: 3 of 7 right (42.9 %). a 2 taken for 1: 2 times; a 0 taken for 1: 1 time; "
        "a 2 taken for 0: 1 time."
    )


def test_confusion_says_a_and_an() -> None:
    names = ["cat", "airplane"]
    assert "an airplane taken for cat: 1 time." in show.confusion(np.array([0, 1]), np.array([0, 0]), names).alt
    assert "an 8 taken for 1" in show.confusion(np.array([8, 1]), np.array([1, 1])).alt


@pytest.mark.parametrize(
    ("labels", "guesses"), [([0, 1], [0]), ([], []), ([0, -1], [0, 0]), ([0, 30], [0, 0]), ([[0]], [[0]])]
)
def test_confusion_refuses_what_is_no_list_of_labels(labels: Any, guesses: Any) -> None:
    with pytest.raises(ValueError, match="labels and predictions must be"):
        show.confusion(np.array(labels, int), np.array(guesses, int))


def test_filters_of_one_channel_have_signs_and_those_of_three_have_colours() -> None:
    signed = filter_colours(np.array([[[-1.0, 0.0, 1.0]]]))
    assert signed[0, 0, 2] > signed[0, 0, 0]  # purple has more blue than red
    assert signed[0, 2, 0] > signed[0, 2, 2]  # orange the other way round
    red = np.zeros((3, 1, 1))
    red[0] = 2
    assert filter_colours(red)[0, 0].tolist() == [1.0, 0.5, 0.5, 1.0]


def test_filters_say_how_many_are_silent() -> None:
    weight = np.stack([np.ones((1, 3, 3)), -np.ones((1, 3, 3))])
    assert "1 of them gives 0 everywhere" in show.filters(weight, np.ones((1, 5, 5))).alt


@pytest.mark.parametrize("shape", [(3, 3), (4, 2, 3, 3), (65, 1, 3, 3), (0, 1, 3, 3)])
def test_filters_of_another_shape_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="weight must be"):
        show.filters(np.ones(shape))
    with pytest.raises(ValueError, match="image must be"):
        show.filters(np.ones((4, 1, 3, 3)), np.ones((3, 8, 8)))


def test_paths_say_where_they_went() -> None:
    explorer = show.optimizer_paths(bowl, PATHS, BOX)
    assert list(explorer.sliders) == ["optimizer", "rate"]
    calm, wild = explorer.at(optimizer="fast", rate=0.1).alt, explorer.at(optimizer="fast", rate=1.0).alt
    assert calm.startswith("fast with learning rate 0.1 on a surface of two weights: from loss 13 to ")
    assert "it leaves the picture" not in calm
    assert "it leaves the picture at step 1" in wild


def test_a_path_that_runs_to_infinity_has_an_infinite_loss() -> None:
    assert losses(bowl, np.array([[1.0, 0.0], [1e200, 0.0], [np.nan, 0.0]])).tolist() == [1.0, np.inf, np.inf]


@pytest.mark.parametrize("paths", [{}, {"a": {0.1: [[0, 0]]}, "b": {0.2: [[0, 0]]}}, {"a": {0.1: [0, 0]}}, {"a": {}}])
def test_paths_that_do_not_fit_are_refused(paths: Any) -> None:
    with pytest.raises(ValueError, match="paths"):
        show.optimizer_paths(bowl, paths, BOX)
