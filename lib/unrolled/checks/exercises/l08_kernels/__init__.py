"""Write kernels of your own, and see what each thread of them reads, shares and waits for."""
