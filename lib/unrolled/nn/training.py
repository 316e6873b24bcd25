"""Training a network: mini-batches, epochs, the history, and what happens when numbers stop being numbers."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from unrolled import kernels, ops
from unrolled.data import Dataset, minibatches
from unrolled.device import Array, array_module, pool_bytes, to_host
from unrolled.nn.clipping import check_clip_norm, clip
from unrolled.nn.history import Evaluation, History
from unrolled.nn.mixed import Mixed, check_precision
from unrolled.nn.optim import Adam, Optimizer
from unrolled.nn.schedules import Schedule
from unrolled.nn.watch import Layered, Snapshot, Watch
from unrolled.ops.arguments import check_array, check_whole
from unrolled.ops.precision import LossScale


class Trainable(Layered, Protocol):
    """A network as far as it is trained; `Sequential` is one."""

    @property
    def gradients(self) -> Array: ...
    @property
    def loss(self) -> Callable[[Array, Array], tuple[Array, Array]]: ...
    def build(self, input_shape: Sequence[int], module: Any = np) -> Any: ...
    def forward(self, x: Array, training: bool = False) -> Array: ...
    def loss_and_scores(self, x: Array, labels: Array) -> tuple[Array, Array]: ...
    def evaluate(self, dataset: Dataset, batch_size: int = 256) -> Evaluation: ...


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


@dataclass(frozen=True)
class Plan:
    """How to train; the arguments of `Sequential.fit`."""

    epochs: int
    batch_size: int
    optimizer: Optimizer | None = None
    schedule: Schedule | None = None
    seed: int = 0
    early_stop: EarlyStop | None = None
    callbacks: Sequence[Callback] = ()
    clip_norm: float | None = None
    progress: bool = True
    precision: str = "float32"
    loss_scale: LossScale | None = None

    def __post_init__(self) -> None:
        check_precision(self.precision, self.loss_scale)
        check_clip_norm(self.clip_norm)
        check_whole("batch_size", self.batch_size)
        check_whole("epochs", self.epochs, 0)
        kinds = {"optimizer": (Optimizer, "nn.Adam()"), "early_stop": (EarlyStop, "nn.EarlyStop(patience=3)")}
        for name, (kind, example) in kinds.items():
            if not isinstance(getattr(self, name), (kind, type(None))):
                raise TypeError(f"{name} is {getattr(self, name)!r}; expected an object such as {example}")
        for value in (*self.callbacks, *([] if self.schedule is None else [self.schedule])):
            if not callable(value):
                raise TypeError(f"schedule and callbacks are functions, got {value!r}")


def fit(network: Trainable, train: Dataset, validation: Dataset | None, plan: Plan) -> History:
    """Train `network` in place; return the history. An epoch visits each image once, in an order that the seed decides.

    Interrupting the training (Ctrl-C, or the notebook's stop button) gives the network the parameters that `Watch`
    kept, on the host those before the step at hand, and `history.stopped` says so. Raises `NonFiniteError` where loss
    or parameters turn NaN or infinite: it names step, layer and array, and the network gets the parameters kept.
    """
    from tqdm.auto import tqdm

    check_set("train", train)
    if validation is not None:
        check_set("validation", validation)
    elif plan.early_stop is not None:
        raise ValueError("early_stop watches the validation loss: fit needs validation, too")
    network.build(train.images.shape[1:], array_module(train.images))
    if validation is not None:
        array_module(validation.images, validation.labels, network.parameters)
        check_validation(network, validation.images[:1], validation.labels)
    history, watch, best = History(), Watch(network), _Best(network)
    optimizer = plan.optimizer or Adam()
    mixed = None if plan.precision == "float32" else Mixed(network, plan.precision, plan.loss_scale)
    bar = tqdm(total=plan.epochs * _steps(train, plan), unit="step", disable=not plan.progress, leave=False)
    # NumPy would warn of what `watch` reports by step, layer and array.
    with np.errstate(all="ignore"), bar:
        try:
            for epoch in range(plan.epochs):
                history.trained(*_epoch(network, train, optimizer, plan, epoch, watch, bar, mixed, history))
                if validation is not None:
                    history.validated(network.evaluate(validation))
                bar.set_postfix_str(history.latest())
                history.stopped = _reason_to_stop(network, plan, history, best)
                if history.stopped:
                    break
        except KeyboardInterrupt:
            watch.restore()
            history.stopped = f"interrupted in epoch {len(history.loss) + 1}"
    if plan.early_stop is not None and plan.early_stop.restore_best:
        best.restore()
    for layer in network.layers:
        layer.forget()
    history.device_bytes = pool_bytes(network.parameters)
    return history


def evaluate(network: Trainable, dataset: Dataset, batch_size: int) -> Evaluation:
    """Return mean loss and accuracy over all images, a batch at a time."""
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


def check_validation(network: Trainable, image: Array, labels: Array) -> None:
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


def _steps(train: Dataset, plan: Plan) -> int:
    """Mini-batches in an epoch."""
    return -(-len(train) // plan.batch_size)


def _epoch(
    network: Trainable,
    train: Dataset,
    optimizer: Optimizer,
    plan: Plan,
    epoch: int,
    watch: Watch,
    bar: Any,
    mixed: Mixed | None,
    history: History,
) -> tuple[NDArray[np.float32], list[int], float, float]:
    """All mini-batches once; what `History.trained` takes.

    Losses and hits stay where the network is until the end: a GPU never waits for us.
    """
    start = time.perf_counter()
    losses = array_module(network.parameters).zeros(_steps(train, plan), dtype=np.float32)
    rate = 1.0 if plan.schedule is None else plan.schedule(epoch)
    sizes, right = [], 0
    for step, (images, labels) in enumerate(minibatches(train, plan.batch_size, (plan.seed, epoch))):
        if mixed is None:
            (loss, scores), usable = network.loss_and_scores(images, labels), True
        else:
            history.loss_scale.append(mixed.state.scale)
            loss, scores, usable = mixed.step(images, labels)
            history.skipped += not usable
        watch.check(loss, images, labels)
        if plan.clip_norm is not None:
            clip(network.gradients, plan.clip_norm)
        if usable:
            optimizer.step(network.parameters, network.gradients, rate)
        losses[step] = loss
        right = right + _right(scores, labels)
        sizes.append(len(labels))
        bar.update()
    watch.check_parameters()
    return to_host(losses), sizes, float(to_host(right)), time.perf_counter() - start


def _right(scores: Array, labels: Array) -> Array:
    """How many scores are highest at their label; NaN where labels are no classes."""
    if labels.ndim == 1 and kernels.take(scores) and labels.dtype.char == "l":
        right = array_module(scores).empty((), dtype="int64")
        kernels.count_right((scores, labels), (right,), kernels.constants(m=scores.shape[1]))
        return right
    return (scores.argmax(axis=1) == labels).sum() if labels.ndim == 1 else math.nan


def _reason_to_stop(network: Trainable, plan: Plan, history: History, best: _Best) -> str | None:
    epochs = len(history.loss)
    if True in [callback(network, history) for callback in plan.callbacks]:
        return f"a callback ended it after epoch {epochs}"
    if plan.early_stop is not None:
        best.compare(history.validation_loss[-1])
        if best.epochs_ago >= plan.early_stop.patience:
            since = f"since epoch {epochs - best.epochs_ago}" if best.epochs_ago < epochs else "than NaN or infinity"
            return f"no better validation loss {since}"
    return None


@dataclass
class _Best:
    """Parameters and state at the lowest validation loss so far."""

    network: Trainable
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
