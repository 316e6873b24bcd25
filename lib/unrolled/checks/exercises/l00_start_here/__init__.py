"""Lesson 00: what its exercises ask."""
