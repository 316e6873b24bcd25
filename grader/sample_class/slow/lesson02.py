"""Right, and a loop over images and positions where one product was asked for."""

import numpy as np

from unrolled import ops


def conv2d_gemm(x, weight, bias=None, stride=1, padding=0):
    (o, _, kh, kw), n = weight.shape, len(x)
    oh, ow = ops.conv2d_output_size(x.shape[2:], (kh, kw), stride, padding)
    padded = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    rows = weight.reshape(o, -1)
    y = np.empty((n, o, oh, ow), dtype=x.dtype)
    for image in range(n):
        for row in range(oh):
            for column in range(ow):
                top, left = row * stride, column * stride
                window = padded[image, :, top : top + kh, left : left + kw]
                y[image, :, row, column] = rows @ window.ravel()
                if bias is not None:
                    y[image, :, row, column] += bias
    return y
