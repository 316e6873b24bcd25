"""unrolled.show: the pictures of lesson 05 say what the training did."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from pictures import HISTORY, TRAINING_ONLY, bowl

from unrolled import show
from unrolled.show.training import Live, losses_along


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


def test_a_path_that_runs_to_infinity_has_an_infinite_loss() -> None:
    assert losses_along(bowl, np.array([[1.0, 0.0], [1e200, 0.0], [np.nan, 0.0]])).tolist() == [1.0, np.inf, np.inf]
