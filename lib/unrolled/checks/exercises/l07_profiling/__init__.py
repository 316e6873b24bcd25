"""Drill down until the parts add up to the whole, and repair what is slow."""
