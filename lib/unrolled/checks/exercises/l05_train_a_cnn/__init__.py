"""Train, watch and stop a network; your first seconds per MNIST epoch."""
