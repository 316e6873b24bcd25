"""The gradient of a pooled convolution by its input: back to its map by the routes, then to the pixels."""

from __future__ import annotations

import numpy as np

from unrolled.kernels.columns import meetings
from unrolled.kernels.kernel import Arrays, Kernel, Options, per_value
from unrolled.kernels.pooled_convolution import unpooled

# A thread for each value of the map looks at the windows that can reach it; names as in `pooled_convolution`.
UNROUTE = r"""
    int column = at % OW + RW, row = at / OW % OH + RH;
    Index plane = at / (OH * OW) * (YH * YW);
    T total = 0;
    for (int i = row < QH ? 0 : (row - QH) / TH + 1; i <= row / TH && i < YH; ++i)
        for (int j = column < QW ? 0 : (column - QW) / TW + 1; j <= column / TW && j < YW; ++j)
            if (routes[plane + i * YW + j] == (row - i * TH) * QW + column - j * TW) total += grad[plane + i * YW + j];
    values[at] = total;
"""

# A thread for each pixel and EACH channels: it gathers, so that no two threads write to one place.
CONVOLUTION_INPUTS = r"""
extern "C" __global__ void convolution_inputs(
    const T* __restrict__ values, const T* __restrict__ weight, const T* __restrict__ x, T* __restrict__ grad_x,
    Index size) {
    Index at = blockIdx.x * (Index)blockDim.x + threadIdx.x;
    if (at >= size / EACH) return;
    int column = at % W, row = at / W % H, first = at / (H * W) % (C / EACH) * EACH;
    Index image = at / (H * W) / (C / EACH);
    T totals[EACH] = {};
    for (int i = 0; i < KH; ++i) {
        int y = (row + PH - i) / SH;
        if (row + PH < i || (row + PH - i) % SH || y >= OH) continue;
        for (int j = 0; j < KW; ++j) {
            int z = (column + PW - j) / SW;
            if (column + PW < j || (column + PW - j) % SW || z >= OW) continue;
            #pragma unroll 4
            for (int o = 0; o < O; ++o) {
                T g = values[((image * O + o) * OH + y) * OW + z];
                #pragma unroll
                for (int e = 0; e < EACH; ++e) totals[e] += g * weight[((o * C + first + e) * KH + i) * KW + j];
            }
        }
    }
    #pragma unroll
    for (int e = 0; e < EACH; ++e) {
        Index to = ((image * C + first + e) * H + row) * W + column;
        grad_x[to] = !MASKED || x[to] > 0 ? totals[e] : (T)0;
    }
}
"""


def _unroute(inputs: Arrays, outputs: Arrays, options: Options) -> None:
    (grad, routes), (values,) = inputs, outputs
    values[...] = unpooled(grad, routes, options)


def _convolution_inputs(inputs: Arrays, outputs: Arrays, options: Options) -> None:
    (values, weight, x), (grad_x,) = inputs, outputs
    grad_x[...] = 0
    for i, j, of, to in meetings(options):
        grad_x[to] += np.einsum("noyx,oc->ncyx", values, weight[:, :, i, j], optimize=True)[of]
    if options["masked"]:
        grad_x *= x > 0


ROUTES = "grad, unsigned char routes -> values"
unroute = per_value("unroute", ROUTES, UNROUTE, _unroute, lambda inputs, *_: int(inputs[0].size))
"""grad and routes, both (N, O, YH, YW), to the gradient by the convolution's map (N, O, OH, OW)."""
convolution_inputs = Kernel(
    "convolution_inputs",
    CONVOLUTION_INPUTS,
    _convolution_inputs,
    lambda inputs, outputs, options: int(2 * outputs[0].size * options["o"] * options["kh"] * options["kw"]),
    threads=lambda size, options: size // int(options["each"]),
)
"""The gradient by x (N, C, H, W), which is 0 where x is, if `masked`: x came out of a ReLU then."""
