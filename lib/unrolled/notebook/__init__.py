"""Notebooks: reading their cells, running them, handing them in, and moving answers to a newer release."""

import sys

# jsonschema, which nbformat imports, has a parser of IRIs built where it finds one: seconds of CPU time in each
# process, and no schema of a notebook asks for it. https://github.com/python-jsonschema/jsonschema/issues/1428
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
