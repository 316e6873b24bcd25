#!/bin/sh
# CuPy 14.2.0: `argmax` of an array with two NaNs does not always name the first.
#
# NumPy promises the first place of the largest value, and NaN counts as the largest. CuPy keeps the promise for numbers.
# Of NaNs it names either: which one depends on where in its tree of comparisons the two meet. Needs a CUDA GPU and
# CUDA 13. Seen on an H100: the later place in about a quarter of 1,000 draws, e.g. `argmax of 3 values`.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m pip install -q --target "$folder" cupy-cuda13x==14.2.0 numpy==2.4.6
PYTHONPATH=$folder python3 - <<'PYTHON'
import cupy as cp
import numpy as np

rng, later = np.random.default_rng(0), {"NaN": 0, "one number": 0}
for _ in range(1000):
    x = rng.standard_normal(1000).astype(np.float32)
    places = rng.choice(1000, size=2, replace=False)
    for name, value in (("NaN", np.nan), ("one number", 9)):
        x[places] = value
        later[name] += int(cp.asarray(x).argmax()) != int(x.argmax())
for name, count in later.items():
    print(f"{name} twice: the later place in {count} of 1000 draws")
assert later["NaN"] > 0 == later["one number"]
PYTHON
