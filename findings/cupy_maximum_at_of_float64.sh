#!/bin/sh
# CuPy 14.2.0: `maximum.at` and `minimum.at` of float64 round to float32, and lose a NaN.
#
# Their kernels compare by `fmaxf` and `fminf`, C's functions for float32, also where the array holds float64
# (cupy/_core/include/cupy/atomics.cuh). So a value that stays is rounded, too. `cupy.maximum` is right. Needs a CUDA GPU
# and CUDA 13. Seen on an H100:
#
#     maximum.at of 100.7 and 1: 100.69999694824219
#     maximum.at of nan and 1: 1.0
#     maximum of 100.7 and 1: 100.7
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m pip install -q --target "$folder" cupy-cuda13x==14.2.0 numpy==2.4.6
PYTHONPATH=$folder python3 - <<'PYTHON'
import cupy as cp

found = []
for value in (100.7, float("nan")):
    x = cp.asarray([value])
    cp.maximum.at(x, cp.asarray([0]), 1)
    found.append(float(x[0]))
    print(f"maximum.at of {value} and 1:", found[-1])
print("maximum of 100.7 and 1:", float(cp.maximum(cp.asarray([100.7]), 1)[0]))
assert found[0] != 100.7 and abs(found[0] - 100.7) < 1e-5 and found[1] == 1
PYTHON
