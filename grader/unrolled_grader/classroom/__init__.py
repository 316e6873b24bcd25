"""A class of one's own: its trees, what the instructor decided, its private seed, and near-copies across it."""
