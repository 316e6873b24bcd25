#!/bin/sh
# NVIDIA's driver 580 for Linux: where /proc is read-only, CUDA does not start, and its error does not say why.
#
# cuInit names its threads by writing to /proc/self/task/N/comm. Where a sandbox has bound /proc read-only, that fails
# with EROFS, and cuInit returns 304, CUDA_ERROR_OPERATING_SYSTEM, though the GPU and all of its files are in reach.
# CUDA Python 13.0.3 is used to call it. Needs a CUDA GPU, and root for the mount in a namespace of its own. Seen on an
# H200, driver 580.159.04, Linux 6.18:
#
#     /proc as it is: cuInit gives 0, CUDA_SUCCESS
#     /proc read-only: cuInit gives 304, CUDA_ERROR_OPERATING_SYSTEM
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m pip install -q --target "$folder" cuda-bindings==13.0.3
cat > "$folder/init.py" <<'PYTHON'
import sys

from cuda.bindings import driver

(found,) = driver.cuInit(0)
print(f"{sys.argv[1]}: cuInit gives {int(found)}, {found.name}")
PYTHON
export PYTHONPATH="$folder"
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
{
    python3 "$folder/init.py" "/proc as it is"
    unshare --mount sh -c 'mount -o remount,bind,ro /proc && python3 "$1/init.py" "/proc read-only"' sh "$folder"
} | tee "$folder/seen"
grep -q '/proc as it is: cuInit gives 0,' "$folder/seen"
grep -q '/proc read-only: cuInit gives 304,' "$folder/seen"
