"""Lesson 01: what its exercises ask."""
