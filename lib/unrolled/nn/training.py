"""Training a network: mini-batches, epochs, the history, and what happens when numbers stop being numbers."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from unrolled import kernels, ops
from unrolled.data import Dataset, minibatches
from unrolled.device import Array, array_module, pool_bytes, to_host
from unrolled.nn.built import Network
from unrolled.nn.history import Evaluation, History
from unrolled.nn.mixed import Mixed, check_precision
from unrolled.nn.optim import Adam, Optimizer
from unrolled.nn.schedules import Schedule
from unrolled.nn.watch import Snapshot, Watch
from unrolled.ops.arguments import check_array, check_whole
from unrolled.ops.precision import LossScale

EPSILON = 1e-6  # PyTorch's in clipping: a gradient of 0 stays 0
Callback = Callable[[Any, History], Any]
"""Called after each epoch with the network and the history so far; True ends the training."""


@dataclass(frozen=True)
class EarlyStop:
    """End the training when the validation loss has not improved for `patience` epochs.

    With `restore_best` the network then gets back the parameters of its best epoch.
    """

    patience: int = 3
    restore_best: bool = True

    def __post_init__(self) -> None:
        check_whole("patience", self.patience)


def check_options(
    epochs: int,
    batch_size: int,
    optimizer: Optimizer | None,
    schedule: Schedule | None,
    early_stop: EarlyStop | None = None,
    callbacks: Sequence[Callback] = (),
) -> None:
    """Raise TypeError or ValueError for what is no such option of a training."""
    check_whole("batch_size", batch_size)
    check_whole("epochs", epochs, 0)
    for name, value, kind, example in (
        ("optimizer", optimizer, Optimizer, "nn.Adam()"),
        ("early_stop", early_stop, EarlyStop, "nn.EarlyStop(patience=3)"),
    ):
        if not isinstance(value, (kind, type(None))):
            raise TypeError(f"{name} is {value!r}; expected an object such as {example}")
    for function in (*callbacks, *([] if schedule is None else [schedule])):
        if not callable(function):
            raise TypeError(f"schedule and callbacks are functions, got {function!r}")


def fit(
    network: Network,
    train: Dataset,
    *more: Any,
    epochs: int = 5,
    batch_size: int = 32,
    optimizer: Optimizer | None = None,
    schedule: Schedule | None = None,
    validation: Dataset | None = None,
    seed: int = 0,
    early_stop: EarlyStop | None = None,
    callbacks: Sequence[Callback] = (),
    clip_norm: float | None = None,
    progress: bool = True,
    precision: str = "float32",
    loss_scale: LossScale | None = None,
) -> History:
    """Train on mini-batches and return the history. An epoch visits each image once, in an order that `seed` decides.

    With `clip_norm` the gradient of a step is scaled so that its norm, of all parameters together, is at most that.
    precision "float16" or "bfloat16" rounds all that passes to 16 bits and keeps the weights in float32, as
    `nn.mixed` says. float16 scales the loss, from `loss_scale` on: overflow skips the step and halves it, 2,000
    good steps double it.

    Interrupting the training (Ctrl-C, or the notebook's stop button) gives the network the parameters that `Watch`
    kept, on the host those before the step at hand, and `history.stopped` says so. Raises `NonFiniteError` where loss
    or parameters turn NaN or infinite: it names step, layer and array, and the network gets the parameters kept.
    """
    from tqdm.auto import tqdm

    if more:
        raise TypeError("fit takes images and labels together, fit(data.Dataset(images, labels)), all else by name")
    check_precision(precision, loss_scale)
    check_clip_norm(clip_norm)
    check_options(epochs, batch_size, optimizer, schedule, early_stop, callbacks)
    check_set("train", train)
    if validation is not None:
        check_set("validation", validation)
    elif early_stop is not None:
        raise ValueError("early_stop watches the validation loss: fit needs validation, too")
    network.build(train.images.shape[1:], array_module(train.images))
    if validation is not None:
        array_module(validation.images, validation.labels, network.parameters)
        check_validation(network, validation.images[:1], validation.labels)
    history, watch, best = History(), Watch(network), _Best(network)
    mixed = None if precision == "float32" else Mixed(network, precision, loss_scale)
    steps = epochs * -(-len(train) // batch_size)
    bar = tqdm(total=steps, unit="step", disable=not progress, leave=False)
    run = _Run(network, train, batch_size, seed, optimizer or Adam(), clip_norm, watch, mixed, history, bar)
    # NumPy would warn of what `watch` reports by step, layer and array.
    with np.errstate(all="ignore"), bar:
        try:
            for epoch in range(epochs):
                run.epoch(epoch, 1.0 if schedule is None else schedule(epoch))
                if validation is not None:
                    history.validated(network.evaluate(validation))
                bar.set_postfix_str(history.latest())
                history.stopped = _reason_to_stop(network, history, callbacks, early_stop, best)
                if history.stopped:
                    break
        except KeyboardInterrupt:
            watch.restore()
            history.stopped = f"interrupted in epoch {len(history.loss) + 1}"
    if early_stop is not None and early_stop.restore_best:
        best.restore()
    for layer in network.layers:
        layer.forget()
    history.device_bytes = pool_bytes(network.parameters)
    return history


def evaluate(network: Network, dataset: Dataset, batch_size: int = 256) -> Evaluation:
    """Return mean loss and accuracy, a batch at a time: memory grows with `batch_size`, not with the set."""
    check_whole("batch_size", batch_size)
    check_set("dataset", dataset)
    loss, correct = 0.0, 0.0
    for start in range(0, len(dataset), batch_size):
        part = slice(start, start + batch_size)
        labels = dataset.labels[part]
        scores = network.forward(dataset.images[part])
        loss += float(to_host(network.loss(scores, labels)[0])) * len(labels)
        correct += float(to_host(_right(scores, labels)))
    return Evaluation(loss / len(dataset), correct / len(dataset))


def check_validation(network: Network, image: Array, labels: Array) -> None:
    """Find out before the first step what would only show after an epoch: one image (1, ...) goes in, and all labels.

    Raises ValueError where they do not fit.
    """
    try:
        scores = network.forward(image)
        zeros = array_module(scores).zeros((len(labels), *scores.shape[1:]), dtype=scores.dtype)
        if network.loss in (ops.softmax_cross_entropy, ops.mean_squared_error):  # on the host they look at the values
            labels, zeros = to_host(labels), to_host(zeros)
        network.loss(zeros, labels)
    except ValueError as error:
        raise ValueError(f"validation: {error}") from None


@dataclass(frozen=True)
class _Run:
    """What all steps of a training share."""

    network: Network
    train: Dataset
    batch_size: int
    seed: int
    optimizer: Optimizer
    clip_norm: float | None
    watch: Watch
    mixed: Mixed | None
    history: History
    bar: Any

    def epoch(self, epoch: int, rate: float) -> None:
        """Take all mini-batches once, and add the epoch to the history.

        Losses and hits stay where the network is until the end: a GPU never waits for us.
        """
        start, right, sizes = time.perf_counter(), 0, []
        steps = -(-len(self.train) // self.batch_size)
        losses = array_module(self.network.parameters).zeros(steps, dtype=np.float32)
        for step, (images, labels) in enumerate(minibatches(self.train, self.batch_size, (self.seed, epoch))):
            losses[step], scores = self.step(images, labels, rate)
            right = right + _right(scores, labels)
            sizes.append(len(labels))
            self.bar.update()
        self.watch.check_parameters()
        self.history.trained(to_host(losses), sizes, float(to_host(right)), time.perf_counter() - start)

    def step(self, images: Array, labels: Array, rate: float) -> tuple[Array, Array]:
        """Take one step; return loss (0-d) and scores."""
        network = self.network
        if self.mixed is None:
            (loss, scores), usable = network.loss_and_scores(images, labels), True
        else:
            self.history.loss_scale.append(self.mixed.state.scale)
            loss, scores, usable = self.mixed.step(images, labels)
            self.history.skipped += not usable
        self.watch.check(loss, images, labels)
        if self.clip_norm is not None:
            clip(network.gradients, self.clip_norm)
        if usable:
            self.optimizer.step(network.parameters, network.gradients, rate)
        return loss, scores


def _right(scores: Array, labels: Array) -> Array:
    """How many scores are highest at their label; NaN where labels are no classes."""
    if labels.ndim == 1 and kernels.take(scores) and labels.dtype.char == "l":
        right = array_module(scores).empty((), dtype="int64")
        kernels.count_right((scores, labels), (right,), kernels.constants(m=scores.shape[1]))
        return right
    return (scores.argmax(axis=1) == labels).sum() if labels.ndim == 1 else math.nan


def _reason_to_stop(
    network: Network, history: History, callbacks: Sequence[Callback], early_stop: EarlyStop | None, best: _Best
) -> str | None:
    epochs = len(history.loss)
    if True in [callback(network, history) for callback in callbacks]:
        return f"a callback ended it after epoch {epochs}"
    if early_stop is not None:
        best.compare(history.validation_loss[-1])
        if best.epochs_ago >= early_stop.patience:
            since = f"since epoch {epochs - best.epochs_ago}" if best.epochs_ago < epochs else "than NaN or infinity"
            return f"no better validation loss {since}"
    return None


@dataclass
class _Best:
    """Parameters and state at the lowest validation loss so far."""

    network: Network
    loss: float = math.inf
    epochs_ago: int = 0
    kept: Snapshot | None = None

    def compare(self, loss: float) -> None:
        if loss < self.loss:
            self.loss, self.epochs_ago, self.kept = loss, 0, Snapshot(self.network)
        else:
            self.epochs_ago += 1

    def restore(self) -> None:
        if self.kept is not None:
            self.kept.restore()


def check_set(name: str, dataset: Dataset) -> None:
    """Raise TypeError unless it is a data set of arrays, ValueError unless it has images, and a label for each."""
    if not isinstance(dataset, Dataset):
        raise TypeError(f"{name} is a {type(dataset).__name__}; expected data.Dataset(images, labels)")
    images, labels = dataset.images, dataset.labels
    check_array(f"{name}.images", images)
    check_array(f"{name}.labels", labels)
    if len(images) != len(labels):
        raise ValueError(f"{name} has images {images.shape} but labels {labels.shape}: expected one label an image")
    if not len(images):
        raise ValueError(f"{name} is empty: its images have shape {images.shape}")


def clip(gradients: Array, most: float) -> None:
    """Scale gradients (P,) in place so that their norm is at most `most`, as torch.nn.utils.clip_grad_norm_: too long a
    step is made shorter, in the same direction (Pascanu and others, 2013).

    The norm stays where the gradients are: a GPU is not waited for. Beside a NaN all stay as they are, so that it can
    be found where it is.
    """
    module = array_module(gradients)
    norm = module.sqrt((gradients * gradients).sum())
    share = most / (norm + EPSILON)
    gradients *= module.where(share < 1, share, 1).astype(gradients.dtype)


def check_clip_norm(clip_norm: float | None) -> None:
    """Raise TypeError or ValueError unless clip_norm is None or a number above 0."""
    if clip_norm is None:
        return
    if isinstance(clip_norm, bool) or not isinstance(clip_norm, Real):
        raise TypeError(f"clip_norm is {clip_norm!r}; expected a number, such as 1.0, or None")
    if not clip_norm > 0:
        raise ValueError(f"clip_norm is {clip_norm}; expected a norm above 0, or None")
