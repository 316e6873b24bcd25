"""Lesson 05: what its exercises ask."""
