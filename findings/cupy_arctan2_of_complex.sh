#!/bin/sh
# CuPy 14.2.0: `arctan2` and `copysign` of complex numbers are compiled before anybody sees that they do not exist.
#
# NumPy raises TypeError, which says that the types are not supported. In CuPy the error is the C++ compiler's, a
# CompileException with its listing, and `except TypeError` does not catch it. Needs a CUDA GPU and CUDA 13. Seen on an
# H100:
#
#     numpy.arctan2: TypeError
#     cupy.arctan2: CompileException
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m pip install -q --target "$folder" cupy-cuda13x==14.2.0 numpy==2.4.6
PYTHONPATH=$folder python3 - <<'PYTHON'
import cupy
import numpy

found = []
for module in (numpy, cupy):
    x = module.ones(3, dtype="complex64")
    try:
        module.arctan2(x, x)
        found.append("runs")
    except Exception as error:
        found.append(type(error).__name__)
    print(f"{module.__name__}.arctan2: {found[-1]}")
assert found == ["TypeError", "CompileException"]
PYTHON
