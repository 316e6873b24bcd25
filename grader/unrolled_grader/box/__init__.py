"""Runs student code out of reach."""
