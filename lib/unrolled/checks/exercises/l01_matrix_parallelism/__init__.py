"""See why one matrix product beats a million small steps."""
