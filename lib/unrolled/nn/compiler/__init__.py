"""A whole training step as one program: `nn.compiled(network, optimizer, batch)`.

`stages` reads a network as a list of fused stages. `host` runs them on the CPU in buffers that are made once. `cuda`
runs them as CUDA kernels in one graph, of `parts` whose work `plans` shares out. `step` is the door: it chooses,
checks, and falls back on the eager path; `before` lets it go back to where a run began.
"""
