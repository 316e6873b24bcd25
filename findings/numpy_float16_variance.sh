#!/bin/sh
# NumPy 2.4.6: the variance along the first axis of a float16 array is wrong by much more than float16's rounding.
#
# `mean` of float16 computes in float32; `var` and `std` sum in float16, one value after the other along an axis that is
# not the last in memory. Such a sum of ones ends at 2048, where one more no longer changes it. So the variance of 5,000
# equal values is 0.2048 and not 0. The same values in Fortran's order, whose first axis is contiguous, give 0: they are
# summed in pairs. Seen on x86-64:
#
#     float16  mean 1.0  var 0.2048
#     the same in Fortran's order  var 0.0
#     float32  var 0.0
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m pip install -q --target "$folder" numpy==2.4.6
PYTHONPATH=$folder python3 - <<'PYTHON'
import numpy as np

ones = np.ones((5000, 3), dtype=np.float16)
print("float16  mean", ones.mean(axis=0)[0], " var", ones.var(axis=0)[0])
print("the same in Fortran's order  var", np.asfortranarray(ones).var(axis=0)[0])
print("float32  var", ones.astype(np.float32).var(axis=0)[0])
assert ones.mean(axis=0)[0] == 1 and abs(float(ones.var(axis=0)[0]) - 0.2048) < 1e-3
assert np.asfortranarray(ones).var(axis=0)[0] == 0 == ones.astype(np.float32).var(axis=0)[0]
PYTHON
