"""Lesson 02: what its exercises ask."""
