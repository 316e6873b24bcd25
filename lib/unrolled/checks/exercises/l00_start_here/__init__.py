"""Rehearse the whole path once."""
