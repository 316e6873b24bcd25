"""Batches gathered on the device: what a host would pick out of the training set between two steps."""

from __future__ import annotations

from unrolled.kernels.kernel import Arrays, Options, per_value

GATHER = r"""
    Index row = at / VALUES;
    int value = at % VALUES;
    x[at] = images[order[row] * VALUES + value];
    if (value == 0) y[row] = labels[order[row]];
"""


def _gather(inputs: Arrays, outputs: Arrays, options: Options) -> None:
    (images, labels, order), (x, y) = inputs, outputs
    x[...] = images[order].reshape(x.shape)
    y[...] = labels[order].reshape(y.shape)


PARAMETERS = "images, long long labels, long long order -> x, long long y"
gather = per_value("gather", PARAMETERS, GATHER, _gather, lambda inputs, outputs, options: 0)
"""Copies the images (M, ...) and labels (M,) that order (S,) names, int64 both, `values` numbers an image."""
