"""Gradient clipping: too long a step is made shorter, in the same direction (Pascanu and others, 2013)."""

from __future__ import annotations

from numbers import Real

from unrolled.device import Array, array_module

EPSILON = 1e-6  # PyTorch's: a gradient of 0 stays 0


def clip(gradients: Array, most: float) -> None:
    """Scale gradients (P,) in place so that their norm is at most `most`, as torch.nn.utils.clip_grad_norm_.

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
