"""Grading for Unrolled: the authoring pipeline, the judge, and the plugins through which nbgrader uses both."""

import sys

# jsonschema, which nbformat imports, has a parser of IRIs built where it finds one: over a second of CPU time in each
# process, and no schema of a notebook asks for it. https://github.com/python-jsonschema/jsonschema/issues/1428
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
