"""Notebooks: reading their cells, running them, handing them in, and moving answers to a newer release."""

import sys

# jsonschema, which nbformat imports, has a parser of IRIs built where it finds one: seconds of CPU time in each
# process. A parser of durations takes a tenth of nbformat's time. No schema of a notebook asks for either.
# https://github.com/python-jsonschema/jsonschema/issues/1428
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
sys.modules.setdefault("isoduration", None)  # type: ignore[arg-type]
