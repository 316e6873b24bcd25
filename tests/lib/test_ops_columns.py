"""im2col and col2im: order of rows and columns, and PyTorch's unfold and fold over random shapes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from ops_cases import Geometry, geometries

from unrolled import ops


@settings(max_examples=40, deadline=None)
@given(geometries())
def test_they_are_pytorchs_unfold_and_fold(g: Geometry) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch comes with the extras `peers` and `dev`")
    x, options = g.arrays()[0], {"kernel_size": g.kernel_size, "stride": g.stride, "padding": g.padding}
    patches = torch.nn.functional.unfold(torch.tensor(x), **options)  # (N, C * KH * KW, OH * OW)
    columns = ops.im2col(x, **options)
    np.testing.assert_array_equal(columns, patches.permute(1, 0, 2).reshape(columns.shape))
    back = torch.nn.functional.fold(patches, g.size, **options)
    for col2im in (ops.col2im, ops.col2im_loops):
        np.testing.assert_allclose(col2im(columns, x.shape, **options), back, rtol=1e-12, atol=1e-12)
