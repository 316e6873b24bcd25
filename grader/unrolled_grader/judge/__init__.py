"""From the bytes that were handed in to verdicts."""
