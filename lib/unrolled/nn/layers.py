"""Layers: forward pass, backward pass, and parameters, if there are any. Each is a thin wrapper around `unrolled.ops`.

A layer is made without sizes: `Conv2d(10, 3)`. `Sequential` tells it the shape of what comes in, gives it its places in
two flat buffers (all parameters of the network, all gradients), and runs it. Shapes are those of one sample, without N.
"""

from __future__ import annotations

from dataclasses import MISSING, dataclass, field, fields
from inspect import get_annotations
from math import prod, sqrt
from typing import Any

import numpy as np

from unrolled import ops
from unrolled.device import Array, array_module
from unrolled.nn.habits import Answering, answering
from unrolled.ops.arguments import IntOrPair, check_array, check_shape, check_whole, pair
from unrolled.ops.methods import check as check_method
from unrolled.ops.windows import Windows

Shape = tuple[int, ...]
VIEWS = ("parameters", "gradients", "state")  # of a layer, into the arrays of its network


class Views(dict[str, Array]):
    """A layer's arrays by name. To assign to a name is to copy the values: the network holds the array itself."""

    def __setitem__(self, name: str, value: Array) -> None:
        """Copy the values into the array of that name. Raises ValueError for another shape."""
        there = self[name]
        check_array(name, value)
        check_shape(name, value, there.shape, "the layer")
        there[...] = value

    def update(self, *values: Any, **named: Any) -> None:
        """Copy values, name by name."""
        for name, value in dict(*values, **named).items():
            self[name] = value

    def __missing__(self, name: str) -> Array:
        """Say what is there. A layer has nothing before a network is built from it."""
        there = f"expected one of {', '.join(self)}" if self else "Sequential(...).build(input_shape) makes the arrays"
        raise LookupError(f"this layer has no {name!r}: {there}")


@dataclass(eq=False, repr=False)
class Layer(Answering):
    """One step of a network. This one has no parameters and keeps the shape."""

    parameters: Views = field(default_factory=Views, init=False)
    """What training changes, by name: views into the network's one array of parameters."""
    gradients: Views = field(default_factory=Views, init=False)
    """The gradient of the loss by each parameter, after a backward pass: views, too."""
    state: Views = field(default_factory=Views, init=False)
    """What forward passes in training change themselves, by name, such as running averages: views, too."""
    constants: dict[str, Array] = field(default_factory=dict, init=False)
    """What nothing changes, by name, each array in a dtype of its own, such as int8; a file holds them, too."""
    is_first: bool = field(default=False, init=False)
    """Nobody asks for the gradient by a network's input, so its first layer need not compute it."""
    network: Any = field(default=None, init=False)
    """The network that this layer was built into; it can be in one only."""
    multiply_adds: int = field(default=0, init=False)
    """Multiplications with an addition that one sample takes in the forward pass, once the layer is built."""
    _kept: Any = field(default=None, init=False)

    def build(self, shape: Shape) -> Shape:
        """Return the shape of a sample that leaves, for the shape of one that comes in.

        Raises ValueError for a shape that the layer cannot take.
        """
        return shape

    @property
    def parameter_shapes(self) -> dict[str, Shape]:
        """The shape of each parameter by name, once the layer is built."""
        return {}

    def initial(self, rng: np.random.Generator) -> dict[str, Array]:
        """Return first values of the parameters by name, drawn on the host, once the layer is built."""
        return {}

    def initial_state(self) -> dict[str, Array]:
        """Return first values of `state` by name, on the host, once the layer is built."""
        return {}

    def forward(self, x: Array, training: bool = False) -> Array:
        """Return the layer's output for a batch x (N, ...). In training, keep what `backward` needs, else nothing.

        Raises TypeError in this class, which has no forward pass.
        """
        raise TypeError(f"{type(self).__name__} has no forward pass")

    def backward(self, grad: Array) -> Array | None:
        """Return the gradient by the layer's input, from that by its output; fill `gradients`.

        A layer with parameters returns None if it `is_first`. Raises TypeError in this class, which has no such pass.
        """
        raise TypeError(f"{type(self).__name__} has no backward pass")

    def __call__(self, *args: Any, **options: Any) -> None:
        raise TypeError(f"{self!r} is not called: write layer.forward(x), or layer.forward(x, training=True)")

    def forget(self) -> None:
        """Let go of what `forward` kept."""
        self._kept = None

    def kept(self) -> Any:
        """Return what `forward` kept. Raises RuntimeError unless the last forward pass was in training."""
        if self._kept is None:
            raise RuntimeError(f"{self!r}: backward needs a forward pass with training=True before it")
        return self._kept

    def __setattr__(self, name: str, value: Any) -> None:
        """Copy the values where a dictionary is assigned to `parameters`, `gradients` or `state`."""
        if name in VIEWS and not isinstance(value, Views):
            getattr(self, name).update(value)
        else:
            super().__setattr__(name, value)

    def __getstate__(self) -> dict[str, Any]:
        """Without views, and without what a forward pass kept: a copy is a layer of a copied network."""
        return {name: value for name, value in vars(self).items() if not isinstance(value, Views)} | {"_kept": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take all but the views, which the network gives: before this, or after."""
        vars(self).update({name: Views() for name in VIEWS} | vars(self) | state)

    def __repr__(self) -> str:
        """As one would write it: required arguments, then those not at their defaults, the class's own first."""
        words, own = [], get_annotations(type(self))
        options = [option for option in fields(self) if option.init]
        for option in sorted(options, key=lambda option: (option.kw_only, option.name not in own)):
            value = getattr(self, option.name)
            if option.default is MISSING:
                words.append(repr(value))
            elif value != option.default:
                words.append(f"{option.name}={value!r}")
        return f"{type(self).__name__}({', '.join(words)})"


@dataclass(eq=False, repr=False)
class Weighted(Layer):
    """A layer with a weight (outputs, ...) and a bias (outputs,).

    The first weights are normal with standard deviation `weight_scale`; None means sqrt(2 / inputs of one output),
    which keeps the size of the values through layers of ReLU (He et al., 2015, arXiv:1502.01852). The first bias is 0.
    """

    weight_scale: float | None = field(default=None, kw_only=True)
    weight_shape: Shape = field(default=(), init=False)

    @property
    def parameter_shapes(self) -> dict[str, Shape]:
        return {"weight": self.weight_shape, "bias": self.weight_shape[:1]}

    def initial(self, rng: np.random.Generator) -> dict[str, Array]:
        inputs = prod(self.weight_shape[1:])
        scale = sqrt(2 / max(1, inputs)) if self.weight_scale is None else self.weight_scale
        return {"weight": rng.normal(0, scale, self.weight_shape), "bias": np.zeros(self.weight_shape[0])}


@answering("sizes of inputs follow from the first batch, so nn.Linear(784, 10) of PyTorch is nn.Linear(10) here")
@dataclass(eq=False, repr=False)
class Linear(Weighted):
    """A dense layer: (N, D) to (N, features)."""

    features: int

    def build(self, shape: Shape) -> Shape:
        if len(shape) != 1:
            raise ValueError(f"{self!r} takes flat samples (D,), got {shape}: put Flatten() before it")
        check_whole("features", self.features)
        self.weight_shape = (self.features, shape[0])
        self.multiply_adds = prod(self.weight_shape)
        return (self.features,)

    def forward(self, x: Array, training: bool = False) -> Array:
        self._kept = x if training else None
        return ops.affine(x, self.parameters["weight"], self.parameters["bias"])

    def backward(self, grad: Array) -> Array | None:
        out = self.gradients["weight"], self.gradients["bias"]
        x, weight = self.kept(), self.parameters["weight"]
        return ops.affine_backward(grad, x, weight, input_gradient=not self.is_first, out=out)[0]


@answering(
    "input channels follow from the first batch, so nn.Conv2d(1, 10, 3) of PyTorch is nn.Conv2d(10, 3) here; "
    "stride and padding need their names"
)
@dataclass(eq=False, repr=False)
class Conv2d(Weighted):
    """A convolution: (N, C, H, W) to (N, filters, OH, OW). method: how it is computed, as in `ops.conv2d`."""

    filters: int
    kernel_size: IntOrPair
    stride: IntOrPair = field(default=1, kw_only=True)
    padding: IntOrPair = field(default=0, kw_only=True)
    method: str = field(default="gemm", kw_only=True)

    def build(self, shape: Shape) -> Shape:
        channels, *size = _image_shape(self, shape)
        kernel_size = pair("kernel_size", self.kernel_size, least=1)
        check_whole("filters", self.filters)
        check_method(self.method, Windows.over((size[0], size[1]), kernel_size, self.stride, self.padding))
        self.weight_shape = (self.filters, channels, *kernel_size)
        outputs = ops.conv2d_output_size((size[0], size[1]), kernel_size, self.stride, self.padding)
        self.multiply_adds = prod(self.weight_shape) * prod(outputs)
        return (self.filters, *outputs)

    def forward(self, x: Array, training: bool = False) -> Array:
        self._kept = x if training else None
        weight, bias = self.parameters["weight"], self.parameters["bias"]
        return ops.conv2d(x, weight, bias, self.stride, self.padding, method=self.method)

    def backward(self, grad: Array) -> Array | None:
        out = self.gradients["weight"], self.gradients["bias"]
        windows = self.stride, self.padding
        x, weight, wanted = self.kept(), self.parameters["weight"], not self.is_first
        return ops.conv2d_backward(grad, x, weight, *windows, method=self.method, input_gradient=wanted, out=out)[0]


@dataclass(eq=False, repr=False)
class Pooling(Layer):
    """A window that slides over each channel: (N, C, H, W) to (N, C, OH, OW). stride is kernel_size unless given."""

    kernel_size: IntOrPair
    stride: IntOrPair | None = None
    padding: IntOrPair = 0

    @property
    def window(self) -> tuple[IntOrPair, IntOrPair | None, IntOrPair]:
        return self.kernel_size, self.stride, self.padding

    def build(self, shape: Shape) -> Shape:
        channels, *size = _image_shape(self, shape)
        stride = self.kernel_size if self.stride is None else self.stride
        return (channels, *ops.conv2d_output_size((size[0], size[1]), self.kernel_size, stride, self.padding))


@answering("expected kernel_size, stride and padding")
@dataclass(eq=False, repr=False)
class MaxPool2d(Pooling):
    """The largest value of each window."""

    def forward(self, x: Array, training: bool = False) -> Array:
        if not training:
            self._kept = None
            return ops.max_pool2d(x, *self.window)
        y, indices = ops.max_pool2d_with_indices(x, *self.window)
        self._kept = indices, x.shape[2:], ops.pool.pooling_windows(x.shape, *self.window)
        return y

    def backward(self, grad: Array) -> Array | None:
        return ops.max_unpool2d(grad, *self.kept())  # what `ops.max_pool2d_backward` does, without a second search


@answering("expected kernel_size, stride and padding")
@dataclass(eq=False, repr=False)
class AvgPool2d(Pooling):
    """The mean of each window; padding counts as zeros."""

    def forward(self, x: Array, training: bool = False) -> Array:
        self._kept = x.shape if training else None
        return ops.avg_pool2d(x, *self.window)

    def backward(self, grad: Array) -> Array | None:
        return ops.avg_pool2d_backward(grad, self.kept(), *self.window)


@answering("channels follow from the first batch, so nn.BatchNorm2d(10) of PyTorch is nn.BatchNorm2d() here")
@dataclass(eq=False, repr=False)
class BatchNorm2d(Layer):
    """Each channel with mean beta and standard deviation gamma, two parameters (C,) that start at 0 and 1.

    In training mean and variance are the batch's, and running averages follow them by `momentum`, a share of a step;
    else they are these averages, `state["mean"]` and `state["variance"]`, so that no sample depends on its neighbours.
    Conventions are PyTorch's: the running variance divides by one value fewer. Stands between convolution and ReLU.
    """

    momentum: float = field(default=0.1, kw_only=True)
    epsilon: float = field(default=1e-5, kw_only=True)
    channels: int = field(default=0, init=False)

    def build(self, shape: Shape) -> Shape:
        self.channels = _image_shape(self, shape)[0]
        if not 0 < self.momentum <= 1:
            raise ValueError(f"momentum is {self.momentum}; expected above 0 and at most 1, the share of the new batch")
        if not 0 < self.epsilon < 1:
            raise ValueError(f"epsilon is {self.epsilon}; expected above 0 and below 1")
        self.multiply_adds = prod(shape)
        return shape

    @property
    def parameter_shapes(self) -> dict[str, Shape]:
        return {"gamma": (self.channels,), "beta": (self.channels,)}

    def initial(self, rng: np.random.Generator) -> dict[str, Array]:
        return {"gamma": np.ones(self.channels), "beta": np.zeros(self.channels)}

    def initial_state(self) -> dict[str, Array]:
        return {"mean": np.zeros(self.channels), "variance": np.ones(self.channels)}

    def forward(self, x: Array, training: bool = False) -> Array:
        self._kept = x if training else None
        mean, variance = self.state["mean"], self.state["variance"]
        if training:
            values = len(x) * prod(x.shape[2:])
            if values < 2:
                raise ValueError(f"x has shape {x.shape}: training needs at least two values a channel")
            running, (mean, variance) = (mean, variance), ops.batch_statistics(x)
            for average, new in zip(running, (mean, variance * (values / (values - 1))), strict=True):
                average *= 1 - self.momentum
                average += self.momentum * new
        gamma, beta = self.parameters["gamma"], self.parameters["beta"]
        return ops.batch_norm2d(x, gamma, beta, mean, variance, epsilon=self.epsilon)

    def backward(self, grad: Array) -> Array | None:
        back = ops.batch_norm2d_backward(grad, self.kept(), self.parameters["gamma"], epsilon=self.epsilon)
        grad_x, self.gradients["gamma"][...], self.gradients["beta"][...] = back
        return None if self.is_first else grad_x


@answering("it flattens all axes but the first")
@dataclass(eq=False, repr=False)
class Flatten(Layer):
    """Each sample as one row: (N, C, H, W) to (N, C * H * W)."""

    def build(self, shape: Shape) -> Shape:
        return (prod(shape),)

    def forward(self, x: Array, training: bool = False) -> Array:
        self._kept = x.shape if training else None
        return x.reshape(len(x), prod(x.shape[1:]))

    def backward(self, grad: Array) -> Array | None:
        return grad.reshape(self.kept())


@answering("expected rate alone")
@dataclass(eq=False, repr=False)
class Dropout(Layer):
    """In training, each value is 0 with probability `rate`, and the others are divided by 1 - rate; else all stay."""

    rate: float
    generator: Any = field(default=None, init=False)
    """What draws, of the array library of what comes in; made at the first forward pass in training."""
    seed: int = field(default=0, init=False)
    """What the generator starts from; follows from the network's seed."""

    def build(self, shape: Shape) -> Shape:
        if not 0 <= self.rate < 1:
            raise ValueError(f"rate is {self.rate}; expected 0 or more and below 1")
        return shape

    def initial(self, rng: np.random.Generator) -> dict[str, Array]:
        self.seed, self.generator = int(rng.integers(2**31)), None
        return {}

    def forward(self, x: Array, training: bool = False) -> Array:
        if not training:
            self._kept = None
            return x
        if self.generator is None:
            self.generator = array_module(x).random.default_rng(self.seed)
        y, self._kept = ops.dropout(x, self.rate, self.generator)
        return y

    def backward(self, grad: Array) -> Array | None:
        return ops.dropout_backward(grad, self.kept())


def _image_shape(layer: Layer, shape: Shape) -> Shape:
    if len(shape) != 3:
        raise ValueError(f"{layer!r} takes images (C, H, W), got samples of shape {shape}")
    return shape
