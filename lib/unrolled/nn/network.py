"""A network is a row of layers: `Sequential(Conv2d(10, 3), ReLU(), Flatten(), Linear(10))`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from unrolled import ops
from unrolled.device import Array, array_module, to_device
from unrolled.nn import saving, smaller, training
from unrolled.nn.habits import Answering
from unrolled.nn.layers import VIEWS, Conv2d, Layer, Linear, MaxPool2d, Shape, Views
from unrolled.nn.summary import Summary
from unrolled.ops import allocation
from unrolled.ops.arguments import check_array, check_arrays, check_float, check_shape, check_whole

FILE = "a network's parameters"
Loss = Callable[[Array, Array], tuple[Array, Array]]


class Sequential(Answering):
    """Layers, one after the other, from a batch (N, ...) to scores (N, M).

    The shapes of all parameters follow from the first batch, or from `build`. `loss` takes scores and labels and
    returns the loss with its gradient by the scores. `seed` draws the first weights: the same seed, the same network.

    All parameters lie in one array, `parameters` (P,), and all gradients in another, `gradients` (P,), of `dtype`. A
    layer has views into both. So an optimizer updates the whole network in a few array operations. `state` (S,) holds
    what forward passes in training change: the running averages of batch normalization. For a gradient check let dtype
    and the images be float64.
    """

    def __init__(
        self, *layers: Layer, loss: Loss = ops.softmax_cross_entropy, seed: int = 0, dtype: Any = np.float32
    ) -> None:
        if len(layers) == 1 and isinstance(layers[0], (list, tuple)):
            raise TypeError("layers stand side by side, in no list: Sequential(Conv2d(10, 3), ReLU(), ...)")
        for position, layer in enumerate(layers):
            if not isinstance(layer, Layer):
                raise TypeError(f"layer {position} is {layer!r}; expected a layer, such as Linear(10)")
        if len({id(layer) for layer in layers}) != len(layers):
            raise ValueError("one layer object stands twice in the network: make two, each has weights of its own")
        if not layers:
            raise ValueError("a network needs at least one layer")
        self.layers: tuple[Layer, ...] = layers
        self.loss = loss
        self.seed = seed
        self.input_shape: Shape | None = None
        self.dtype = np.dtype(dtype)
        check_float("dtype", self.dtype)
        if not callable(loss):
            raise TypeError(f"loss is {loss!r}; expected a function, such as ops.softmax_cross_entropy")
        self._parameters: Array = np.zeros(0, self.dtype)
        self._gradients: Array = np.zeros(0, self.dtype)
        self._state: Array = np.zeros(0, self.dtype)
        self._layout: list[list[dict[str, Shape]]] = []  # by layer: of parameters, gradients and state

    @property
    def parameters(self) -> Array:
        """All parameters (P,). To assign an array is to copy its values: the layers hold views into this one."""
        return self._parameters

    @parameters.setter
    def parameters(self, values: Array) -> None:
        check_array("parameters", values)
        check_shape("parameters", values, self._parameters.shape, f"the network's {self._parameters.shape}")
        self._parameters[...] = values

    @property
    def gradients(self) -> Array:
        """The gradient of the loss by each parameter (P,), after a backward pass."""
        return self._gradients

    @property
    def state(self) -> Array:
        """What forward passes in training change (S,), such as running averages; no optimizer sees it."""
        return self._state

    # shapes, forward and backward

    def build(self, input_shape: Sequence[int], module: Any = np) -> Sequential:
        """Find all shapes for samples of `input_shape`, such as (1, 28, 28), and draw the first weights; return self.

        The arrays are those of `module` (numpy, cupy ...); the numbers are the same. Once built, a network keeps its
        shapes. Raises ValueError where a layer cannot take what the one before it gives.
        """
        shape = _sizes(input_shape)
        if self.input_shape not in (None, shape):
            raise ValueError(f"input_shape is {shape}; this network was built for {self.input_shape}")
        if self.input_shape == shape:
            return self
        self._claim()
        self._shapes(shape)
        rng = np.random.default_rng(self.seed)
        if not hasattr(module, "zeros"):
            raise TypeError(f"module is {module!r}; expected an array library, such as numpy or device.gpu()")
        initial, state = [layer.initial(rng) for layer in self.layers], [layer.initial_state() for layer in self.layers]
        self._parameters, self._state = self._flat(initial, module), self._flat(state, module)
        self._gradients = module.zeros(len(self._parameters), dtype=self.dtype)
        kinds = zip(initial, initial, state, strict=True)  # of parameters, gradients and state
        self._layout = [[{name: np.shape(x) for name, x in values.items()} for values in layer] for layer in kinds]
        self._share()
        self.layers[0].is_first = True
        self.input_shape = shape
        return self

    def forward(self, x: Array, training: bool = False) -> Array:
        """Return the scores (N, M) of a batch x (N, ...).

        In training, layers keep what `backward` needs, and dropout drops values.
        """
        x = self._fitting(x)
        for number, layer in enumerate(self.layers):
            try:
                x = layer.forward(x, training)
            except MemoryError as error:
                raise allocation.named(error, f"layer {number}, {layer!r}", len(x)) from error
        return x

    def backward(self, grad: Array) -> None:
        """Fill `gradients` from the gradient of the loss by the scores of the last forward pass in training."""
        for number, layer in reversed(list(enumerate(self.layers))):
            try:
                grad = layer.backward(grad)
            except MemoryError as error:
                raise allocation.named(error, f"layer {number}, {layer!r}", len(grad)) from error

    def loss_and_scores(self, x: Array, labels: Array) -> tuple[Array, Array]:
        """Run a forward pass in training and a backward pass, which fills `gradients`; return loss (0-d) and scores."""
        scores = self.forward(x, training=True)
        loss, grad = self.loss(scores, labels)
        self.backward(grad)
        return loss, scores

    # training and using it

    fit = training.fit
    evaluate = training.evaluate

    def scores(self, images: Array, batch_size: int = 256) -> Array:
        """Return the scores (N, M) of many images, `batch_size` at a time."""
        check_whole("batch_size", batch_size)
        check_arrays(images=images)
        parts = range(0, max(1, len(images)), batch_size)
        return array_module(images).concatenate([self.forward(images[at : at + batch_size]) for at in parts])

    def predict(self, images: Array, batch_size: int = 256) -> Array:
        """Return the class with the highest score: (N,) integers, found `batch_size` images at a time.

        Raises ValueError for a network with a single score.
        """
        scores = self.scores(images, batch_size)
        if scores.shape[1] < 2:
            raise ValueError(f"the network gives scores {scores.shape}, no classes to choose from; use scores(images)")
        return scores.argmax(axis=1)

    # fewer and smaller numbers: see `unrolled.nn.smaller`

    half = smaller.half
    quantize = smaller.quantize
    prune = smaller.prune
    binarize = smaller.binarize

    # what it is made of, and files

    def summary(self, input_shape: Sequence[int] | None = None) -> Summary:
        """Return a table of the layers: shapes, parameters, multiply-adds, bytes.

        `input_shape` builds the network first. Raises ValueError without it for a network that is not built.
        """
        if input_shape is not None:
            self.build(input_shape)
        if self.input_shape is None:
            raise ValueError("this network has no shapes yet: name the input's, as in summary((1, 28, 28))")
        return Summary.of(self.layers, self.input_shape, self._shapes(self.input_shape), self.dtype.itemsize)

    def save(self, path: str | Path) -> None:
        """Write parameters and state to an .npz file (no pickle in it). Raises ValueError before there are any."""
        if self.input_shape is None:
            raise ValueError("this network has no parameters yet: train it or build it first")
        places = enumerate(layer.parameters | layer.state | layer.constants for layer in self.layers)
        arrays = {f"{number}.{name}": value for number, values in places for name, value in values.items()}
        origin = {saving.INPUT_SHAPE: np.array(self.input_shape), saving.LAYERS: np.array(len(self.layers))}
        saving.save(Path(path), arrays | origin)

    def load(self, path: str | Path) -> Sequential:
        """Take parameters and state from a file that `save` wrote; return self.

        Raises ValueError, and changes no parameter, where the file does not fit. Nothing is read before it does.
        """
        path = Path(path)
        found = saving.headers(path, FILE)
        input_shape, layers = saving.origin(path, FILE)
        with saving.naming(path):
            if self.input_shape not in (None, input_shape):
                raise ValueError(f"its input shape is {input_shape}, the network's is {self.input_shape}")
            self._shapes(_sizes(input_shape))
            places = saving.check_fit(layers, [self._headers(layer) for layer in self.layers], found)
        arrays = saving.arrays(path, FILE, places)
        self.build(input_shape)
        for key, (number, name) in places.items():
            layer = self.layers[number]
            there = (layer.parameters | layer.state | layer.constants)[name]
            there[...] = to_device(arrays[key], array_module(self.parameters))
        return self

    def __call__(self, *args: Any, **options: Any) -> None:
        raise TypeError("a network is not called: scores(images) uses it, and forward(x, training=True) trains it")

    def __repr__(self) -> str:
        return f"Sequential({', '.join(map(repr, self.layers))})"

    # how its arrays lie

    def _fitting(self, x: Array) -> Array:
        """x, for which the network is built; the first batch builds it."""
        check_arrays(x=x)
        if x.ndim < 2:
            raise ValueError(f"x has shape {x.shape}; expected a batch of samples (N, ...)")
        if self.input_shape is None:
            self.build(x.shape[1:], array_module(x))
        if tuple(x.shape[1:]) != self.input_shape:
            batch = f"(N, {', '.join(map(str, self.input_shape or ()))})"
            hint = "; for one sample, x[None]" if tuple(x.shape) == self.input_shape else ""
            raise ValueError(f"x has shape {x.shape}; this network was built for batches {batch}{hint}")
        return x

    def _claim(self) -> None:
        """Raise ValueError if a layer belongs to another network: it would lose its parameters to this one."""
        for number, layer in enumerate(self.layers):
            if layer.network not in (None, self):
                raise ValueError(f"layer {number}, {layer!r}, belongs to another network; make a new one for this")
        for layer in self.layers:
            layer.network = self

    def _shapes(self, shape: Shape) -> list[Shape]:
        """The shape that leaves each layer. Tells every layer what comes in."""
        shapes = []
        for number, layer in enumerate(self.layers):
            try:
                shape = layer.build(shape)
            except ValueError as error:
                raise ValueError(f"layer {number}, {layer!r}: {error}") from None
            shapes.append(shape)
        return shapes

    def _flat(self, layers: Sequence[dict[str, Array]], module: Any) -> Array:
        """The values of all layers one after the other, in one array of `module`."""
        values = [np.ravel(value).astype(self.dtype) for layer in layers for value in layer.values()]
        return to_device(np.concatenate(values), module) if values else module.zeros(0, dtype=self.dtype)

    def _headers(self, layer: Layer) -> dict[str, saving.Header]:
        """Shape and dtype of all that a file holds of a layer, which is told its input's shape but may have nothing."""
        shapes = layer.parameter_shapes | {name: x.shape for name, x in layer.initial_state().items()}
        own = {name: saving.Header(x.shape, x.dtype) for name, x in layer.constants.items()}
        return {name: saving.Header(shape, self.dtype) for name, shape in shapes.items()} | own

    def _share(self) -> None:
        """Give each layer its views into the network's arrays."""
        start = dict.fromkeys(VIEWS, 0)
        for layer, kinds in zip(self.layers, self._layout, strict=False):  # no layout before it is built
            for kind, shapes in zip(VIEWS, kinds, strict=True):
                views = Views()
                for name, shape in shapes.items():
                    stop = start[kind] + prod(shape)
                    views |= {name: getattr(self, kind)[start[kind] : stop].reshape(shape)}
                    start[kind] = stop
                setattr(layer, kind, views)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Become a copy, by `copy.deepcopy` or pickle: its layers view its own arrays."""
        vars(self).update(state)
        self._share()


def predict_with_loops(network: Sequential, images: Array) -> Array:
    """Return `network.predict(images)` from loops over every axis: thousands of times slower, fit for a few images."""
    x = images
    network.build(images.shape[1:])
    for layer in network.layers:
        x = _forward_in_loops(layer, x)
    return x.argmax(axis=1)


def _forward_in_loops(layer: Layer, x: Array) -> Array:
    """A layer's output: from plain loops where it has any to unroll, else from its forward pass."""
    if isinstance(layer, Conv2d):
        weight, bias = layer.parameters["weight"], layer.parameters["bias"]
        return ops.conv2d_loops(x, weight, bias, layer.stride, layer.padding)
    if isinstance(layer, MaxPool2d):
        return ops.max_pool2d_loops(x, *layer.window)
    if isinstance(layer, Linear):
        return ops.matmul_loops(x, layer.parameters["weight"].T) + layer.parameters["bias"]
    return layer.forward(x)


def _sizes(input_shape: Any) -> Shape:
    """The shape of a sample, checked."""
    if not isinstance(input_shape, (tuple, list)):
        raise TypeError(f"input_shape is {input_shape!r}; expected sizes without N, such as (1, 28, 28)")
    for size in input_shape:
        check_whole("a size of input_shape", size)
    return tuple(map(int, input_shape))
