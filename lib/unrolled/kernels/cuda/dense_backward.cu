// A block for 32 inputs: its warps take the outputs in turn. A weight is loaded for the gradient by x, and the gradient
// by this weight is written at the same place.
constexpr int WARPS = BLOCK / 32, CHUNK = 128;
extern "C" __global__ void __launch_bounds__(BLOCK) dense_backward(
    const T* __restrict__ grad, const T* __restrict__ x, const T* __restrict__ weight, T* __restrict__ grad_x,
    T* __restrict__ grad_weight, T* __restrict__ grad_bias, Index size) {
    __shared__ T shares[CHUNK][BATCH];
    __shared__ T partial[INPUTS ? WARPS : 1][BATCH][32];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, k = blockIdx.x * 32 + lane;
    T values[BATCH], sums[BATCH] = {};
    #pragma unroll
    for (int n = 0; n < BATCH; ++n) values[n] = k < D ? x[n * D + k] : (T)0;
    for (int first = 0; first < O; first += CHUNK) {
        __syncthreads();
        for (int at = threadIdx.x; at < CHUNK * BATCH; at += BLOCK) {
            int o = first + at % CHUNK, n = at / CHUNK;
            shares[at % CHUNK][n] = o < O ? grad[n * O + o] : (T)0;
        }
        __syncthreads();
        if (k < D) {
            #pragma unroll 4
            for (int o = first + warp; o < min(O, first + CHUNK); o += WARPS) {
                Index at = o * (Index)D + k;
                T w = INPUTS ? weight[at] : (T)0, total = 0;
                #pragma unroll
                for (int n = 0; n < BATCH; ++n) {
                    T g = shares[o - first][n];
                    total += g * values[n];
                    if (INPUTS) sums[n] += g * w;
                }
                grad_weight[at] = total;
            }
        }
        if (blockIdx.x == 0)
            for (int o = first + threadIdx.x; o < min(O, first + CHUNK); o += BLOCK) {
                T total = 0;
                for (int n = 0; n < BATCH; ++n) total += shares[o - first][n];
                grad_bias[o] = total;
            }
    }
    if (!INPUTS) return;
    #pragma unroll
    for (int n = 0; n < BATCH; ++n) partial[warp][n][lane] = sums[n];
    __syncthreads();
    for (int at = threadIdx.x; at < 32 * BATCH; at += BLOCK) {
        int n = at / 32, column = blockIdx.x * 32 + at % 32;
        T total = 0;
        for (int other = 0; other < WARPS; ++other) total += partial[other][n][at % 32];
        if (column < D) grad_x[n * D + column] = !MASKED || x[n * D + column] > 0 ? total : (T)0;
    }
}
