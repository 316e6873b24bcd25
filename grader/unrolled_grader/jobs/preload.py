"""What each judge needs first, done once: the process from which judges are forked imports this module."""

import gc

import nbformat

from unrolled import checks
from unrolled_grader.box import sandbox
from unrolled_grader.jobs import job

nbformat.validate(nbformat.v4.new_notebook())  # compiles the schema
checks.lessons()
job.asking_hash({}, b"")  # reads all code that judges
if not sandbox.problem():
    sandbox.version()
gc.freeze()  # collections in a judge need not look through all of it
