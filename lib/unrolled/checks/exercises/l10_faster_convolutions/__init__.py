"""Count multiplications, convolve through frequencies and by Winograd, and find when fewer are faster."""
