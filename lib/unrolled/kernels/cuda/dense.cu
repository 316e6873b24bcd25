// A block for each output: its threads share out the inputs D, then add up across lanes, then across warps.
extern "C" __global__ void __launch_bounds__(BLOCK) dense(
    const T* __restrict__ x, const T* __restrict__ weight, const T* __restrict__ bias, T* __restrict__ y, Index size) {
    __shared__ T partial[BLOCK / 32][BATCH];
    int o = blockIdx.x;
    T sums[BATCH] = {};
    #pragma unroll 4
    for (int k = threadIdx.x; k < D; k += BLOCK) {
        T w = weight[o * (Index)D + k];
        #pragma unroll
        for (int n = 0; n < BATCH; ++n) sums[n] += w * x[n * D + k];
    }
    #pragma unroll
    for (int n = 0; n < BATCH; ++n) {
        for (int far = 16; far > 0; far /= 2) sums[n] += __shfl_xor_sync(0xffffffff, sums[n], far);
        if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32][n] = sums[n];
    }
    __syncthreads();
    for (int n = threadIdx.x; n < BATCH; n += BLOCK) {
        T total = bias[o];
        for (int warp = 0; warp < BLOCK / 32; ++warp) total += partial[warp][n];
        y[n * O + o] = !RELU || total > 0 || total != total ? total : (T)0;
    }
}
