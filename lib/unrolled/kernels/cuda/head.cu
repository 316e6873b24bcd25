// A warp for each of the SAMPLES of a block: lane m has class m. The weight lies in shared memory, its rows filled up to
// a multiple of 32. What is summed over the samples is left to the second kernel, unless there is one block alone.
constexpr int LOADS = (D + 31) / 32, PITCH = 32 * LOADS, ALL = 0xffffffff;

extern "C" __global__ void __launch_bounds__(BLOCK) head(
    const T* __restrict__ x, const T* __restrict__ weight, const T* __restrict__ bias,
    const long long* __restrict__ labels, T* __restrict__ losses, T* __restrict__ grad_scores, T* __restrict__ grad_x,
    T* __restrict__ loss, T* __restrict__ grad_weight, T* __restrict__ grad_bias, Index size) {
    __shared__ T rows[M * PITCH], grads[SAMPLES][32], own[SAMPLES];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, sample = blockIdx.x * SAMPLES + warp;
    T values[LOADS], score = 0, g = 0, lost = 0;
    #pragma unroll
    for (int l = 0; l < LOADS; ++l)
        values[l] = sample < BATCH && lane + 32 * l < D ? x[sample * D + lane + 32 * l] : (T)0;
    #pragma unroll 4
    for (int at = threadIdx.x; at < M * PITCH; at += BLOCK)
        rows[at] = at % PITCH < D ? weight[at / PITCH * D + at % PITCH] : (T)0;
    __syncthreads();
    if (sample < BATCH) {
        #pragma unroll
        for (int m = 0; m < M; ++m) {
            T total = 0;
            #pragma unroll
            for (int l = 0; l < LOADS; ++l) total += values[l] * rows[m * PITCH + lane + 32 * l];
            #pragma unroll
            for (int far = 16; far > 0; far /= 2) total += __shfl_xor_sync(ALL, total, far);
            if (lane == m) score = total + bias[m];
        }
        T largest = lane < M ? score : (T)__int_as_float(0xff800000);  // minus infinity
        #pragma unroll
        for (int far = 16; far > 0; far /= 2) largest = MAX(largest, __shfl_xor_sync(ALL, largest, far));
        T share = lane < M ? EXP(score - largest) : (T)0, total = share;
        #pragma unroll
        for (int far = 16; far > 0; far /= 2) total += __shfl_xor_sync(ALL, total, far);
        long long label = labels[sample];
        bool known = label >= 0 && label < M;
        T right = __shfl_sync(ALL, score, known ? (int)label : 0);
        lost = known ? LOG(total) - (right - largest) : (T)__int_as_float(0x7fffffff);  // else NaN
        if (lane < M) g = share / (total * BATCH) - (lane == label ? (T)1 / BATCH : (T)0);
        T back[LOADS] = {};
        #pragma unroll
        for (int m = 0; m < M; ++m) {
            T of = __shfl_sync(ALL, g, m);
            #pragma unroll
            for (int l = 0; l < LOADS; ++l) back[l] += of * rows[m * PITCH + lane + 32 * l];
        }
        #pragma unroll
        for (int l = 0; l < LOADS; ++l)
            if (INPUTS && lane + 32 * l < D)
                grad_x[sample * D + lane + 32 * l] = !MASKED || values[l] > 0 ? back[l] : (T)0;
        if (BLOCKS > 1 && lane < M) grad_scores[sample * M + lane] = g;
        if (BLOCKS > 1 && lane == 0) losses[sample] = lost;
    }
    if (BLOCKS > 1) return;
    grads[warp][lane] = g;
    if (lane == 0) own[warp] = lost;
    __syncthreads();
    for (int at = threadIdx.x; at < M * D + M + 1; at += BLOCK) {
        int m = at / D, k = at % D;
        T total = 0;
        #pragma unroll 8
        for (int n = 0; n < BATCH; ++n)
            total += at < M * D ? grads[n][m] * x[n * D + k] : at < M * D + M ? grads[n][at - M * D] : own[n];
        if (at < M * D) grad_weight[at] = total;
        else if (at < M * D + M) grad_bias[at - M * D] = total;
        else loss[0] = total / BATCH;
    }
}
