"""How blocks of one launch add up what each of them found, in an order that never changes.

Each block writes its part to memory and counts itself in. The one that comes last adds all parts, from the first
block's on. So the sum costs no launch of its own, and it does not depend on which block was last.
"""

from __future__ import annotations

LAST_BLOCK = r"""
__device__ bool is_last(int* counter, int blocks) {  // for all threads of a block, after their parts are written
    __shared__ bool last;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        last = atomicAdd(counter, 1) == blocks - 1;
        if (last) *counter = 0;  // for the next launch
    }
    __syncthreads();
    if (last) __threadfence();
    return last;
}
"""
"""CUDA: whether this block is the last of so many. `counter` lies in device memory and is 0 before a launch."""
