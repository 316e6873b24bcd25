"""Checkpoints: what a training needs to go on, written so that a death while writing loses one step at most."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from unrolled.device import array_module, to_device, to_host
from unrolled.nn import Optimizer, Sequential
from unrolled.ops.arguments import check_whole
from unrolled.parallel.communicator import Communicator

NETWORK, OPTIMIZER, PLACE = "network.npz", "optimizer.npz", "place.json"
PREFIX, UNFINISHED = "step-", ".unfinished"


@dataclass(frozen=True)
class Place:
    """How far a training is: the epoch, and the step in it that comes next."""

    epoch: int = 0
    step: int = 0

    @classmethod
    def after(cls, epoch: int, step: int, steps: int) -> Place:
        """Return what comes after a step, of as many as an epoch has."""
        return cls(epoch, step + 1) if step + 1 < steps else cls(epoch + 1, 0)


class Checkpoint:
    """A folder that keeps the newest checkpoint: a folder in it, which gets its name when it is complete."""

    def __init__(self, folder: Path, every: int = 1) -> None:
        check_whole("every", every)
        self._folder, self._every, self._taken = folder, every, 0

    def after_step(self, comm: Communicator, network: Sequential, optimizer: Optimizer, place: Place) -> None:
        """Let rank 0 write a checkpoint, if it is time for one."""
        self._taken += 1
        if comm.rank == 0 and self._taken % self._every == 0:
            self.save(network, optimizer, place)

    def save(self, network: Sequential, optimizer: Optimizer, place: Place) -> None:
        """Write a checkpoint, then remove the older ones."""
        older = self._complete()
        number = 1 + max(map(_number, older), default=0)
        unfinished = self._folder / f"{PREFIX}{number}{UNFINISHED}"
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        network.save(unfinished / NETWORK)
        optimizer.save(unfinished / OPTIMIZER)
        (unfinished / PLACE).write_text(json.dumps(asdict(place)), encoding="utf-8")
        os.replace(unfinished, self._folder / f"{PREFIX}{number}")
        for folder in older:
            shutil.rmtree(folder, ignore_errors=True)

    def resume(self, comm: Communicator, network: Sequential, optimizer: Optimizer) -> Place:
        """Give network and optimizer what the newest checkpoint holds, on all ranks; return the place.

        Without a checkpoint nothing changes. Rank 0 says which one is the newest, and all read it: so the folder is one
        that all ranks see. Raises ValueError for one of another network or optimizer.
        """
        newest = max(map(_number, self._complete()), default=0) if comm.rank == 0 else 0
        module = array_module(network.parameters)
        number = int(to_host(comm.broadcast(to_device(np.array([newest], np.int64), module)))[0])
        if not number:
            return Place()
        folder = self._folder / f"{PREFIX}{number}"
        network.load(folder / NETWORK)
        optimizer.load(folder / OPTIMIZER)
        place = Place(**json.loads((folder / PLACE).read_text(encoding="utf-8")))
        comm.barrier()
        return place

    def _complete(self) -> list[Path]:
        """The complete checkpoints; what else lies in the folder is left alone."""
        return [path for path in self._folder.glob(f"{PREFIX}*") if path.name.removeprefix(PREFIX).isdecimal()]


def _number(folder: Path) -> int:
    return int(folder.name.removeprefix(PREFIX))
