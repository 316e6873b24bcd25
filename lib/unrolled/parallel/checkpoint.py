"""Checkpoints: what a training needs to go on, written so that a death while writing loses one step at most.

The newest two are kept. What a step left is known to be good when the loss of the next one is finite: if it is not, the
newest checkpoint is removed, and the one before it is where the training can go on.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from unrolled.device import array_module, to_device, to_host
from unrolled.nn import History, Optimizer, Sequential, saving
from unrolled.parallel.communicator import Communicator

NETWORK, OPTIMIZER, PROGRESS, OPTIONS = "network.npz", "optimizer.npz", "progress.npz", "training.json"
PREFIX, UNFINISHED = "step-", ".unfinished"
KEPT = 2  # checkpoints
OWN = "epoch", "step", "losses", "right", "seconds"  # of what is saved of a progress
SERIES = "loss", "accuracy", "validation_loss", "validation_accuracy", "seconds", "step_loss"  # of its history


@dataclass(frozen=True)
class Progress:
    """How far a training is, and what it has found so far, on all ranks together."""

    epoch: int = 0
    step: int = 0
    """How many steps of this epoch are taken: all of them as well, until the epoch is in the history."""
    losses: NDArray[np.float32] = field(default_factory=lambda: np.zeros(0, np.float32))
    """Of these steps."""
    right: float = 0.0
    """How many of their images were right."""
    seconds: float = 0.0
    history: History = field(default_factory=History)
    """Of the epochs before."""

    def save(self, path: Path) -> None:
        """Write all of it to an .npz file."""
        own = {name: np.array(getattr(self, name)) for name in OWN}
        saving.save(path, own | {f"history.{name}": np.array(getattr(self.history, name)) for name in SERIES})

    @classmethod
    def load(cls, path: Path) -> Progress:
        """Return what `save` wrote. Raises ValueError for any other file."""
        found = saving.arrays(path, "a training's progress", [*OWN, *(f"history.{name}" for name in SERIES)])
        history = History(**{name: found[f"history.{name}"].tolist() for name in SERIES})
        numbers = {name: found[name].item() for name in OWN if name != "losses"}
        return cls(**numbers, losses=found["losses"], history=history)


class Checkpoint:
    """A folder that keeps the newest checkpoints: folders in it, which get their names when they are complete.

    options: what has to be the same for a training to go on, in words by name.
    """

    def __init__(self, folder: Path, every: int, options: Mapping[str, str]) -> None:
        self._folder, self._every, self._options, self._steps = folder, every, dict(options), 0
        self.newest: Progress | None = None

    def is_due(self) -> bool:
        """Count a step; return whether a checkpoint is to be written after it."""
        self._steps += 1
        return self._steps % self._every == 0

    def after_step(self, comm: Communicator, network: Sequential, optimizer: Optimizer, progress: Progress) -> None:
        """Let rank 0 write a checkpoint."""
        if comm.rank == 0:
            self.save(network, optimizer, progress)
        self.newest = progress

    def save(self, network: Sequential, optimizer: Optimizer, progress: Progress) -> None:
        """Write a checkpoint, then remove those that are too old."""
        older = sorted(self._complete(), key=_number)
        number = 1 + max(map(_number, older), default=0)
        unfinished = self._folder / f"{PREFIX}{number}{UNFINISHED}"
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        network.save(unfinished / NETWORK)
        optimizer.save(unfinished / OPTIMIZER)
        progress.save(unfinished / PROGRESS)
        (unfinished / OPTIONS).write_text(json.dumps(self._options), encoding="utf-8")
        os.replace(unfinished, self._folder / f"{PREFIX}{number}")
        for folder in older[: 1 - KEPT]:
            _remove(folder)

    def remove_newest(self, comm: Communicator) -> None:
        """Let rank 0 remove the newest checkpoint; return, on all ranks, when that is done."""
        if comm.rank == 0:
            _remove(max(self._complete(), key=_number))
        comm.barrier()

    def resume(self, comm: Communicator, network: Sequential, optimizer: Optimizer, epochs: int) -> Progress:
        """Give network and optimizer what the newest checkpoint holds, on all ranks; return how far it is.

        Without a checkpoint nothing changes. Rank 0 says which one is the newest, and all read it: so the folder is one
        that all ranks see. Raises ValueError, on all ranks, for one of a training with other options, or that
        is further than so many epochs.
        """
        newest = max(map(_number, self._complete()), default=0) if comm.rank == 0 else 0
        module = array_module(network.parameters)
        number = int(to_host(comm.broadcast(to_device(np.array([newest], np.int64), module)))[0])
        if not number:
            return Progress()
        folder = self._folder / f"{PREFIX}{number}"
        self._check_options(folder)
        self.newest = Progress.load(folder / PROGRESS)
        if self.newest.epoch >= epochs:
            raise ValueError(f"epochs is {epochs}, but checkpoint {folder} is of epoch {self.newest.epoch + 1}")
        optimizer.load(folder / OPTIMIZER)
        network.load(folder / NETWORK)
        comm.barrier()
        return self.newest

    def _check_options(self, folder: Path) -> None:
        """Raise ValueError unless the training that wrote a checkpoint had the same options."""
        found = json.loads((folder / OPTIONS).read_text(encoding="utf-8"))
        if differ := [name for name, words in self._options.items() if found.get(name) != words]:
            words = "; ".join(f"{name} is {self._options[name]}, there {found.get(name)}" for name in differ)
            raise ValueError(f"checkpoint {folder} is of another training, so this needs another folder: {words}")

    def _complete(self) -> list[Path]:
        """The complete checkpoints; what else lies in the folder is left alone."""
        return [path for path in self._folder.glob(f"{PREFIX}*") if path.name.removeprefix(PREFIX).isdecimal()]


def _number(folder: Path) -> int:
    return int(folder.name.removeprefix(PREFIX))


def _remove(folder: Path) -> None:
    """Remove a checkpoint. Its name goes first: a death in between leaves no part of it that looks complete."""
    unfinished = folder.with_name(folder.name + UNFINISHED)
    shutil.rmtree(unfinished, ignore_errors=True)
    os.replace(folder, unfinished)
    shutil.rmtree(unfinished, ignore_errors=True)
