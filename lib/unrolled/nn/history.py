"""What is recorded of a training: loss, accuracy and seconds of each epoch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Evaluation(NamedTuple):
    """Mean loss, and the share of right predictions (0 to 1)."""

    loss: float
    accuracy: float


@dataclass
class History:
    """One entry an epoch in each list, but `step_loss`, which has one a mini-batch. `print(history)` shows a table.

    `loss` and `accuracy` are those of the mini-batches while the network learns; the `validation_` lists are empty
    where there was no validation. `seconds` are of training alone. `stopped` says why it ended early, else None.
    `device_bytes` is the most memory that the device's pool held, None on the host. `loss_scale` is the scale of each
    step in 16 bits, and `skipped` how many of these steps had gradients that overflowed.
    """

    loss: list[float] = field(default_factory=list)
    accuracy: list[float] = field(default_factory=list)
    validation_loss: list[float] = field(default_factory=list)
    validation_accuracy: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    step_loss: list[float] = field(default_factory=list)
    stopped: str | None = None
    device_bytes: int | None = None
    loss_scale: list[float] = field(default_factory=list)
    skipped: int = 0

    def trained(self, losses: NDArray[np.float32], sizes: Sequence[int], right: float, seconds: float) -> None:
        """Add an epoch: the loss of every mini-batch, their sizes, how many images were right, seconds of training."""
        self.step_loss += losses.tolist()
        self.loss.append(float(np.average(losses, weights=sizes)))
        self.accuracy.append(right / sum(sizes))
        self.seconds.append(seconds)

    def validated(self, evaluation: Evaluation) -> None:
        """Add what the validation set says after an epoch."""
        self.validation_loss.append(evaluation.loss)
        self.validation_accuracy.append(evaluation.accuracy)

    def latest(self) -> str:
        """Return the last epoch in words."""
        words = f"epoch {len(self.loss)}: loss {self.loss[-1]:.3f}{_percent(', accuracy ', self.accuracy[-1])}"
        if self.validation_loss:
            words += f"; validation {self.validation_loss[-1]:.3f}{_percent(', ', self.validation_accuracy[-1])}"
        return words

    def __str__(self) -> str:
        lines = ["epoch   loss  accuracy" + ("   validation" if self.validation_loss else "") + "  seconds"]
        for epoch, (loss, accuracy) in enumerate(zip(self.loss, self.accuracy, strict=True)):
            words = f"{epoch + 1:5} {loss:6.3f} {_percent('', accuracy):>9}"
            if self.validation_loss:
                words += f" {self.validation_loss[epoch]:6.3f} {_percent('', self.validation_accuracy[epoch]):>5}"
            lines.append(f"{words} {self.seconds[epoch]:8.2f}")
        memory = [] if self.device_bytes is None else [f"at most {self.device_bytes / 1e6:,.0f} MB held on the device"]
        scale = [f"{self.skipped} steps skipped, last loss scale {self.loss_scale[-1]:g}"] if self.loss_scale else []
        return "\n".join([*lines, *([self.stopped] if self.stopped else []), *scale, *memory])


def _percent(before: str, accuracy: float) -> str:
    """Nothing where labels are no classes, and so no accuracy is known."""
    return "" if math.isnan(accuracy) else f"{before}{accuracy:.1%}"
