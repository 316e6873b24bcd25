"""Lesson 03: what its exercises ask."""
