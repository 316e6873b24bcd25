"""Lesson 07: what its exercises ask."""
