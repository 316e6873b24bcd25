"""Self-attention as a layer: each step of a sequence gets a weighted mean of what all steps have to give."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import sqrt

import numpy as np

from unrolled import ops
from unrolled.device import Array, array_module
from unrolled.nn.habits import answering
from unrolled.nn.layers import Layer, Shape
from unrolled.ops.arguments import check_whole


@answering("sizes of inputs follow from the first batch, so nn.MultiheadAttention(28, 4) of PyTorch is nn.Attention(4)")
@dataclass(eq=False, repr=False)
class Attention(Layer):
    """Self-attention: sequences (N, T, E) to (N, T, E), in `heads` heads of E / heads values each.

    Queries, keys and values are dense layers of the input, and so is the output of the heads side by side. With
    `causal` a step looks at itself and at those before it. Nothing here knows of an order of the steps.

    Names and layout of the parameters are those of PyTorch's `nn.MultiheadAttention`: `in_proj_weight` (3 * E, E) and
    `in_proj_bias` (3 * E,) have the rows for queries, keys and values, `out_proj.weight` (E, E) and `out_proj.bias`
    (E,) the last layer's. First values are as there: uniform, by in_proj_weight's two sides (Glorot and Bengio, 2010)
    and between -1 / sqrt(E) and 1 / sqrt(E) in out_proj.weight; biases 0.
    """

    heads: int
    causal: bool = field(default=False, kw_only=True)
    values: int = field(default=0, init=False)

    def build(self, shape: Shape) -> Shape:
        if len(shape) != 2:
            rows = ": images[:, 0] has an image's rows as steps" if len(shape) == 3 and shape[0] == 1 else ""
            raise ValueError(f"{self!r} takes sequences (T, E), got samples of shape {shape}{rows}")
        check_whole("heads", self.heads)
        if not isinstance(self.causal, bool):
            raise TypeError(f"causal is {self.causal!r}; expected True or False")
        steps, self.values = shape
        if self.values % self.heads:
            raise ValueError(f"{self!r} takes sequences (T, E) with E a multiple of heads, got samples {shape}")
        self.multiply_adds = steps * self.values * (4 * self.values + 2 * steps)
        return shape

    @property
    def parameter_shapes(self) -> dict[str, Shape]:
        e = self.values
        projections = {"in_proj_weight": (3 * e, e), "in_proj_bias": (3 * e,)}
        return projections | {"out_proj.weight": (e, e), "out_proj.bias": (e,)}

    def initial(self, rng: np.random.Generator) -> dict[str, Array]:
        first = {name: np.zeros(shape) for name, shape in self.parameter_shapes.items()}
        for name, most in (("in_proj_weight", sqrt(6 / (4 * self.values))), ("out_proj.weight", 1 / sqrt(self.values))):
            first[name] = rng.uniform(-most, most, first[name].shape)
        return first

    def forward(self, x: Array, training: bool = False) -> Array:
        (n, t, e), own = x.shape, self.parameters
        steps = x.reshape(n * t, e)
        projected = ops.affine(steps, own["in_proj_weight"], own["in_proj_bias"])
        parts = projected.reshape(n, t, 3, self.heads, e // self.heads).transpose(2, 0, 3, 1, 4).copy()
        q, k, v = parts[0], parts[1], parts[2]  # (N, heads, T, E / heads)
        y, logsumexp = ops.attention_with_logsumexp(q, k, v, causal=self.causal)
        joined = y.transpose(0, 2, 1, 3).reshape(n * t, e)
        self._kept = (steps, q, k, v, y, logsumexp, joined) if training else None
        return ops.affine(joined, own["out_proj.weight"], own["out_proj.bias"]).reshape(n, t, e)

    def backward(self, grad: Array) -> Array | None:
        steps, q, k, v, y, logsumexp, joined = self.kept()
        (n, t, e), own, found = grad.shape, self.parameters, self.gradients
        out = found["out_proj.weight"], found["out_proj.bias"]
        by_joined: Array = ops.affine_backward(grad.reshape(n * t, e), joined, own["out_proj.weight"], out=out)[0]
        by_y = by_joined.reshape(n, t, self.heads, e // self.heads).transpose(0, 2, 1, 3)
        by_parts = array_module(grad).empty((n, t, 3, self.heads, e // self.heads), dtype=grad.dtype)
        by_qkv = ops.attention_backward(by_y, q, k, v, y, logsumexp, causal=self.causal)
        for number, by_part in enumerate(by_qkv):
            by_parts[:, :, number] = by_part.transpose(0, 2, 1, 3)
        out, wanted = (found["in_proj_weight"], found["in_proj_bias"]), not self.is_first
        by_projected = by_parts.reshape(n * t, 3 * e)
        by_x, *_ = ops.affine_backward(by_projected, steps, own["in_proj_weight"], input_gradient=wanted, out=out)
        return None if by_x is None else by_x.reshape(n, t, e)
