// A block for 32 inputs: its warps share out the samples, and a lane has a sum for each class.
constexpr int WARPS = BLOCK / 32;

extern "C" __global__ void __launch_bounds__(BLOCK) head_weights(
    const T* __restrict__ grad_scores, const T* __restrict__ x, const T* __restrict__ losses,
    T* __restrict__ grad_weight, T* __restrict__ grad_bias, T* __restrict__ loss, Index size) {
    __shared__ T partial[WARPS][33];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, k = blockIdx.x * 32 + lane;
    T sums[M] = {};
    #pragma unroll 8
    for (int n = warp; n < BATCH; n += WARPS) {
        T g = lane < M ? grad_scores[n * M + lane] : (T)0;
        T value = k < D ? x[n * D + k] : k == D ? (T)1 : (T)0;  // the bias is the weight of a one
        #pragma unroll
        for (int m = 0; m < M; ++m) sums[m] += __shfl_sync(0xffffffff, g, m) * value;
    }
    T lost = 0;
    if (blockIdx.x == 0)
        for (int n = threadIdx.x; n < BATCH; n += BLOCK) lost += losses[n];
    #pragma unroll
    for (int m = 0; m <= M; ++m) {
        __syncthreads();
        partial[warp][lane] = m < M ? sums[m < M ? m : 0] : lost;
        __syncthreads();
        if (warp != m % WARPS) continue;
        T total = 0;
        #pragma unroll
        for (int other = 0; other < WARPS; ++other) total += partial[other][lane];
        if (m < M && k < D) grad_weight[m * D + k] = total;
        if (m < M && k == D) grad_bias[m] = total;
        if (m < M || blockIdx.x > 0) continue;
        for (int far = 16; far > 0; far /= 2) total += __shfl_xor_sync(0xffffffff, total, far);
        if (lane == 0) loss[0] = total / BATCH;
    }
}
