"""Move the network to a GPU, and time it by a clock that does not lie."""
