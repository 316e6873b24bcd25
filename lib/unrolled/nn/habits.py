"""Answers to those who come from PyTorch or Keras: what a foreign name is called here, in one sentence."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import TYPE_CHECKING, Any, TypeVar

T = TypeVar("T")

FOLLOWS = "leave it out: sizes of inputs follow from the first batch"
OPTIONS = {
    **dict.fromkeys(("in_channels", "in_features", "num_features", "input_size", "input_shape", "input_dim"), FOLLOWS),
    **dict.fromkeys(("embed_dim", "key_dim"), FOLLOWS),
    "num_heads": "heads is the name here",
    "out_channels": "filters is the name here",
    **dict.fromkeys(("out_features", "units"), "features is the name here"),
    "strides": "stride is the name here",
    "bias": "leave it out: these layers always have a bias",
    "batch_first": "leave it out: batches are (N, T, D)",
    "bidirectional": "leave it out: a layer reads from the first step to the last",
    "inplace": "leave it out: inputs are never changed",
    "activation": "an activation is a layer of its own, such as nn.ReLU()",
    "negative_slope": "slope is the name here",
    "p": "rate is the name here",
    "lr": "learning_rate is the name here",
    "eps": "epsilon is the name here",
    "betas": "beta1 and beta2 are the names here",
    **dict.fromkeys(("rho", "alpha"), "decay is the name here"),
    "params": "an optimizer holds no parameters: fit(train, optimizer=nn.Adam()) gives them to it",
}
"""What to say to a keyword argument."""

MEMBERS = {
    **dict.fromkeys(
        ("to", "cuda", "cpu", "device"),
        "it lives where its first batch lives: build(input_shape, module), or fit on arrays of that module",
    ),
    **dict.fromkeys(("state_dict", "load_state_dict", "save_weights", "load_weights"), "use save(path) and load(path)"),
    **dict.fromkeys(("train", "eval"), "forward(x, training=True) trains; without it a network is in use"),
    "zero_grad": "leave it out: each backward pass writes the gradients anew",
    "compile": "loss goes into Sequential(..., loss=...), and the optimizer into fit(..., optimizer=...)",
    **dict.fromkeys(("add", "append"), "all layers go into Sequential(...) at once"),
    **dict.fromkeys(("named_parameters", "get_weights", "weights"), "see parameters, and layers[0].parameters by name"),
    "param_groups": "see learning_rate, which may be changed at any time",
}
"""What to say to an attribute."""


def answering(too_many: str) -> Callable[[type[T]], type[T]]:
    """Return a decorator of a class: a call that does not fit its arguments is answered in a sentence, a TypeError.

    too_many: what to say to one argument without a name too many.
    """

    def decorated(cls: type[T]) -> type[T]:
        init: Any = cls.__init__
        arguments = signature(init)

        @wraps(init)
        def checked(self: Any, *args: Any, **options: Any) -> None:
            try:
                arguments.bind(self, *args, **options)
            except TypeError as error:
                unknown = [name for name in options if name not in arguments.parameters]
                words = [f"{name}: {OPTIONS[name]}" for name in unknown if name in OPTIONS]
                if "positional" in str(error) and "missing" not in str(error):
                    words.append(too_many)
                raise TypeError(f"{type(self).__name__}: {'; '.join([str(error), *words])}") from None
            init(self, *args, **options)

        cls.__init__ = checked  # type: ignore[method-assign]
        return cls

    return decorated


class Answering:
    """What has no attribute of a foreign name, but an answer to it."""

    if not TYPE_CHECKING:  # a type checker has to see what is not there

        def __getattr__(self, name: str) -> Any:
            words = f": {MEMBERS[name]}" if name in MEMBERS else ""
            raise AttributeError(f"{type(self).__name__} has no {name!r}{words}", name=name, obj=self)
