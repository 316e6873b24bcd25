"""Unrolled: from Python loops to GPU speed, one measured step at a time.

`import unrolled` loads NumPy and the standard library only. Everything heavier (matplotlib, widgets, data sets) is
imported by the module that uses it: `from unrolled import check, data, journal, ops, show`.
"""

__version__ = "1.0.0"
