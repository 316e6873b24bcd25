"""Grading for Unrolled: the authoring pipeline, the judge and nbgrader's doors into both."""
