"""Take Python out of a training step, train against the clock, say what each cause gained, mend your own network."""
