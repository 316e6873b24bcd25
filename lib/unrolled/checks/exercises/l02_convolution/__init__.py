"""Write a convolution in loops and unroll it into one product."""
