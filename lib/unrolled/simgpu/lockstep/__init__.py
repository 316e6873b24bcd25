"""Kernels from their source: `compiler` makes a program of it, `launch` runs it with all lanes of a block in lockstep.

Source is text, parameters are plain data and arrays; nothing of it is ever executed as Python. `unrolled.simgpu.jit`
has the names that a program uses.
"""
