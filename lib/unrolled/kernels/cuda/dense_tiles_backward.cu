// The first blocks have the gradient by x, the next the gradient by the weight, the last that by the bias.
__device__ void columns(const T* grad, T* grad_bias, int block, T* shared) {  // sums over samples, 32 outputs a block
    int lane = threadIdx.x % 32, o = block * 32 + lane;
    T total = 0;
    if (o < O)
        #pragma unroll 8
        for (int n = threadIdx.x / 32; n < BATCH; n += THREADS / 32) total += grad[n * (Index)O + o];
    shared[threadIdx.x] = total;
    __syncthreads();
    if (threadIdx.x >= 32 || o >= O) return;
    for (int other = 32; other < THREADS; other += 32) total += shared[other + lane];
    grad_bias[o] = total;
}
extern "C" __global__ void __launch_bounds__(BLOCK) dense_tiles_backward(
    const T* __restrict__ grad, const T* __restrict__ x, const T* __restrict__ weight, T* __restrict__ grad_x,
    T* __restrict__ grad_weight, T* __restrict__ grad_bias, T* parts, int* counters, Index size) {
    __shared__ __align__(16) T shared[SHARED];
    constexpr int WIDE = (D + COLUMNS - 1) / COLUMNS, WEIGHTS = (O + ROWS - 1) / ROWS * WIDE;
    constexpr int SAMPLES = INPUTS ? (BATCH + ROWS - 1) / ROWS * WIDE : 0;
    int block = blockIdx.x;
    if (block < SAMPLES * SPLIT_X)
        tile<BATCH, D, O, false, true, SPLIT_X>(
            grad, weight, block, parts, counters, shared, [=](int n, int k, T sum) {
                Index at = n * (Index)D + k;
                grad_x[at] = !MASKED || x[at] > 0 ? sum : (T)0;
            });
    else if (block < SAMPLES * SPLIT_X + WEIGHTS * SPLIT)
        tile<O, D, BATCH, true, true, SPLIT>(
            grad, x, block - SAMPLES * SPLIT_X, parts + SAMPLES * (Index)SPLIT_X * (ROWS * COLUMNS),
            counters + SAMPLES, shared, [=](int o, int k, T sum) { grad_weight[o * (Index)D + k] = sum; });
    else
        columns(grad, grad_bias, block - WEIGHTS * SPLIT - SAMPLES * SPLIT_X, shared);
}
