"""Send gradients through a network, and catch wrong ones."""
