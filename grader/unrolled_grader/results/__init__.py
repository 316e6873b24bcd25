"""Everything after a verdict."""
