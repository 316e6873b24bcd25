"""Lesson 06: what its exercises ask."""
