#!/bin/sh
# CuPy 14.2.0: an assignment between places of one array that overlap gives wrong values, and no error.
#
# NumPy notices the overlap and copies first. CuPy starts one kernel, whose threads read and write in no order: right by
# chance for some thousand values, which one wave of blocks holds, wrong for a million. Needs a CUDA GPU and CUDA 13.
# Seen on an H100:
#
#     shift of     1000 values by one: right
#     shift of 10000000 values by one: wrong
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m pip install -q --target "$folder" cupy-cuda13x==14.2.0 numpy==2.4.6
PYTHONPATH=$folder python3 - <<'PYTHON'
import cupy as cp
import numpy as np

found = []
for count in (1_000, 10_000_000):
    x, expected = cp.arange(count, dtype=cp.float32), np.arange(count, dtype=np.float32)
    x[1:] = x[:-1]
    expected[1:] = expected[:-1]
    found.append(bool((x.get() == expected).all()))
    print(f"shift of {count:8} values by one:", "right" if found[-1] else "wrong")
assert not found[-1]
PYTHON
