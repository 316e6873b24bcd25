#!/bin/sh
# mypy 2.4.1 with NumPy 2.5.5: checked as Python 3.11, `x.max()` is an error, "require at least one argument".
#
# NumPy 2.5 needs Python 3.12, and so do its stubs. A project that still supports older ones sets mypy's
# `python_version` to its oldest; then overloads of NumPy's methods are gone. The error speaks of the method's
# arguments, and nothing of the version. As Python 3.12 the same line is right. Which line of the stubs is read
# otherwise was not looked into. Needs Python 3.12 or newer: PYTHON=python3.13 sh findings/mypy_numpy_older_python.sh
# Seen with Python 3.13.0:
#
#     as Python 3.11: error: All overload variants of "max" of "ndarray" require at least one argument  [call-overload]
#     as Python 3.12: Success: no issues found in 1 source file
set -eu
python=${PYTHON:-python3}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q mypy==2.4.1 numpy==2.5.5
printf 'import numpy as np\n\nprint(np.ones(3).max())\n' > "$folder/largest.py"
for version in 3.11 3.12; do
    printf 'as Python %s: ' "$version"
    "$folder/venv/bin/mypy" --cache-dir "$folder/cache" --python-version "$version" "$folder/largest.py" 2>&1 |
        grep -o -E 'error: .*|Success: .*' || true
done | tee "$folder/seen"
grep -q 'as Python 3.11: error: All overload variants of "max" of "ndarray" require at least one argument' "$folder/seen"
grep -q 'as Python 3.12: Success: no issues found' "$folder/seen"
