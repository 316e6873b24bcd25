"""Lesson 04: what its exercises ask."""
