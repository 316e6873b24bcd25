"""Grading for Unrolled: the authoring pipeline, the judge, and the plugins through which nbgrader uses both."""

import unrolled.notebook  # noqa: F401 - before nbformat: it then loads in a tenth of the time
