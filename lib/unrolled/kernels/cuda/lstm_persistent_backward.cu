extern "C" __global__ void __launch_bounds__(THREADS, 1) lstm_persistent_backward(
    const float* __restrict__ grad, const float* __restrict__ cells, const float* __restrict__ gates,
    const float* __restrict__ weight, const float* __restrict__ c_first,
    const float* __restrict__ grad_h_last, const float* __restrict__ grad_c_last,
    float* grad_sums, float* grad_h_first, float* grad_c_first, unsigned* arrived, int steps, int n, int first) {
    extern __shared__ float4 after[];   // grad_sums of the step after, of half of the samples: ROWS x 4 * HIDDEN
    __shared__ float by_h[2][ROWS][UNITS], by_sums[ROWS][4][UNITS];
    const int thread = threadIdx.x, lane = thread % 32, s = thread % 64, units = thread / 64;
    const int first_unit = blockIdx.x * UNITS, first_row = first + blockIdx.y * SAMPLES;
    const int sample = thread / 16, u = thread % 16, row = first_row + sample, unit = first_unit + u;
    const bool there = row < n;
    arrived += blockIdx.y * HALVES;

    float4 w[4][PARTS];                 // columns of four units, every 64th float4
    #pragma unroll
    for (int k = 0; k < 4; k++)
        #pragma unroll
        for (int part = 0; part < PARTS; part++) {
            const float* at = weight + (size_t)(part * 64 + s) * 4 * HIDDEN + first_unit + units * 4 + k;
            w[k][part] = make_float4(at[0], at[HIDDEN], at[2 * HIDDEN], at[3 * HIDDEN]);
        }
    float grad_c = there ? grad_c_last[row * HIDDEN + unit] : 0;
    float c = there ? cells[((size_t)(steps - 1) * n + row) * HIDDEN + unit] : 0;

    for (int t = steps - 1; t >= -1; t--) {  // at -1 only the gradient by the first states is left
        float gate[4] = {0, 0, 0, 0}, by_y = 0, c_before = 0;
        if (there && t >= 0) {
            size_t place = (size_t)t * n + row;
            for (int k = 0; k < 4; k++) gate[k] = __ldcs(gates + (place * 4 + k) * HIDDEN + unit);
            by_y = __ldcs(grad + place * HIDDEN + unit);
            c_before = t ? __ldcs(cells + (place - n) * HIDDEN + unit) : c_first[row * HIDDEN + unit];
        }
        #pragma unroll 1
        for (int half = 0; half < HALVES; half++) {
            if (t < steps - 1) {
                if (thread == 0) await(arrived + half, BLOCKS * (steps - 1 - t));
                __syncthreads();
                for (int i = thread; i < ROWS * HIDDEN; i += THREADS) {
                    int r = first_row + half * ROWS + i / HIDDEN;
                    size_t place = (size_t)(t + 1) * n + r;
                    if (r < n) fetch(after + i, (const float4*)(grad_sums + place * 4 * HIDDEN) + i % HIDDEN);
                }
                fetched();
                __syncthreads();
                float sums[32] = {};    // of eight samples and four units
                #pragma unroll
                for (int part = 0; part < PARTS; part++)
                    #pragma unroll
                    for (int r = 0; r < ROWS; r++) {
                        float4 value = after[r * HIDDEN + part * 64 + s];
                        #pragma unroll
                        for (int k = 0; k < 4; k++) sums[r * 4 + k] += dot(w[k][part], value);
                    }
                by_h[s / 32][lane / 4][units * 4 + lane % 4] = added<32>(sums, lane);
                __syncthreads();
            }
            if (sample / ROWS == half) {
                int at = sample % ROWS;
                float grad_h = there ? grad_h_last[row * HIDDEN + unit] : 0;
                if (t < steps - 1) grad_h = by_h[0][at][u] + by_h[1][at][u];
                if (t >= 0) {
                    float i = gate[0], f = gate[1], g = gate[2], o = gate[3], tanh_c = tanhf(c);
                    grad_h += by_y;
                    grad_c += grad_h * o * (1 - tanh_c * tanh_c);
                    by_sums[at][0][u] = grad_c * g * i * (1 - i);
                    by_sums[at][1][u] = grad_c * c_before * f * (1 - f);
                    by_sums[at][2][u] = grad_c * i * (1 - g * g);
                    by_sums[at][3][u] = grad_h * tanh_c * o * (1 - o);
                    grad_c *= f;
                    c = c_before;
                } else if (there) {
                    grad_h_first[row * HIDDEN + unit] = grad_h, grad_c_first[row * HIDDEN + unit] = grad_c;
                }
            }
            if (t < 0) continue;
            __syncthreads();
            if (thread < ROWS * 16) {   // 16 bytes each
                int at = thread / 16, k = thread / 4 % 4, r = first_row + half * ROWS + at;
                float4* to = (float4*)(grad_sums + (((size_t)t * n + r) * 4 + k) * HIDDEN + first_unit) + thread % 4;
                if (r < n) __stcg(to, ((float4*)by_sums[at][k])[thread % 4]);
            }
            __syncthreads();
            if (thread == 0) arrive(arrived + half);
        }
    }
}
