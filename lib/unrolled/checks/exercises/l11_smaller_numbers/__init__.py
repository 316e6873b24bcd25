"""Train and compute with 16, 8 and fewer bits a number, and see where that gains speed and where only memory."""
