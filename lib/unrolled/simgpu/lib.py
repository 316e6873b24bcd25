"""`lib.stride_tricks`, as in NumPy and CuPy."""

from __future__ import annotations

from unrolled.simgpu.views import as_strided, sliding_window_view


class stride_tricks:  # noqa: N801 (NumPy's module)
    """Views of any strides."""

    as_strided = staticmethod(as_strided)
    sliding_window_view = staticmethod(sliding_window_view)
