#!/bin/sh
# CuPy 14.2.0: a kernel of cupyx.jit cannot have the name of a function that CUDA's headers define, such as `max`.
#
# The Python function's name becomes the C++ function's, declared extern "C". What fails is the compilation, at the first
# launch, by a message about C++ ("more than one instance of overloaded function ..."). `min`, `abs`, `exp`, `half` and
# `printf` do the same; `maximum` works. Needs a CUDA GPU and CUDA 13. Seen on an H100:
#
#     maximum: runs
#     max: CompileException
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m pip install -q --target "$folder" cupy-cuda13x==14.2.0 numpy==2.4.6
cat > "$folder/kernels.py" <<'PYTHON'
from cupyx import jit


@jit.rawkernel()
def maximum(x, y):
    y[jit.threadIdx.x] = x[jit.threadIdx.x]


@jit.rawkernel()
def max(x, y):
    y[jit.threadIdx.x] = x[jit.threadIdx.x]
PYTHON
PYTHONPATH=$folder python3 -W ignore - <<'PYTHON'
import cupy as cp
import kernels

x, found = cp.arange(32), []
for kernel in (kernels.maximum, kernels.max):
    try:
        kernel[1, 32](x, cp.empty_like(x))
        found.append("runs")
    except Exception as error:
        found.append(type(error).__name__)
print("maximum:", found[0])
print("max:", found[1])
assert found == ["runs", "CompileException"]
PYTHON
