extern "C" __global__ void __launch_bounds__(THREADS, 1) lstm_persistent(
    const float* __restrict__ sums_x, const float* __restrict__ weight, const float* __restrict__ bias,
    const float* __restrict__ h, const float* __restrict__ c_first,
    float* y, float* cells, float* gates, unsigned* arrived, int steps, int n, int first) {
    extern __shared__ float4 before[];  // y of the step before, of half of the samples: ROWS x HIDDEN
    __shared__ float gate[SAMPLES][4][UNITS], new_h[SAMPLES][UNITS], new_c[SAMPLES][UNITS];
    const int thread = threadIdx.x, u = thread / 16, s = thread % 16;
    const int first_unit = blockIdx.x * UNITS, unit = first_unit + u;
    const int first_row = first + blockIdx.y * SAMPLES, row = first_row + s;  // at the end of a step
    arrived += blockIdx.y * HALVES;

    float4 w[4][PARTS];                 // of this unit's four gates, every 16th float4
    #pragma unroll
    for (int k = 0; k < 4; k++)
        #pragma unroll
        for (int part = 0; part < PARTS; part++)
            w[k][part] = ((const float4*)(weight + (size_t)(k * HIDDEN + unit) * HIDDEN))[part * 16 + s];
    float c = row < n ? c_first[row * HIDDEN + unit] : 0, b[4], x[4] = {0, 0, 0, 0};
    for (int k = 0; k < 4; k++) b[k] = bias[k * HIDDEN + unit];

    for (int t = 0; t < steps; t++) {
        if (row < n)
            for (int k = 0; k < 4; k++) x[k] = __ldcs(sums_x + ((size_t)(t * n + row) * 4 + k) * HIDDEN + unit);
        const float* from = t ? y + (size_t)(t - 1) * n * HIDDEN : h;
        #pragma unroll 1
        for (int half = 0; half < HALVES; half++) {
            if (t && thread == 0) await(arrived + half, BLOCKS * t);
            __syncthreads();
            for (int i = thread; i < ROWS * HIDDEN / 4; i += THREADS) {
                int r = first_row + half * ROWS + i / (HIDDEN / 4);
                if (r < n) fetch(before + i, (const float4*)(from + (size_t)r * HIDDEN) + i % (HIDDEN / 4));
            }
            fetched();
            __syncthreads();
            #pragma unroll
            for (int four = 0; four < ROWS; four += 4) {
                float sums[16] = {};    // of four samples and four gates
                #pragma unroll
                for (int part = 0; part < PARTS; part++)
                    #pragma unroll
                    for (int r = 0; r < 4; r++) {
                        float4 value = before[(four + r) * (HIDDEN / 4) + part * 16 + s];
                        #pragma unroll
                        for (int k = 0; k < 4; k++) sums[r * 4 + k] += dot(w[k][part], value);
                    }
                gate[half * ROWS + four + s / 4][s % 4][u] = added<16>(sums, s);
            }
            __syncwarp();
            if (s / ROWS == half) {
                float i = sigmoid(gate[s][0][u] + x[0] + b[0]), f = sigmoid(gate[s][1][u] + x[1] + b[1]);
                float g = tanhf(gate[s][2][u] + x[2] + b[2]), o = sigmoid(gate[s][3][u] + x[3] + b[3]);
                c = f * c + i * g;
                gate[s][0][u] = i, gate[s][1][u] = f, gate[s][2][u] = g, gate[s][3][u] = o;
                new_c[s][u] = c, new_h[s][u] = o * tanhf(c);
            }
            __syncthreads();
            // The first warp writes what the others wait for; the second c; the last four the gates. 16 bytes a thread.
            int i = thread % 128, sample = half * ROWS + (thread < 128 ? i % 32 / 4 : i / 16);
            size_t place = (size_t)t * n + first_row + sample;
            bool there = first_row + sample < n;
            if (thread < 32) {
                if (there) __stcg((float4*)(y + place * HIDDEN + first_unit) + i % 4, ((float4*)new_h[sample])[i % 4]);
                __syncwarp();
                if (thread == 0) arrive(arrived + half);
            } else if (thread < 64 && there) {
                __stcs((float4*)(cells + place * HIDDEN + first_unit) + i % 4, ((float4*)new_c[sample])[i % 4]);
            } else if (thread >= 128 && there) {
                int k = i / 4 % 4;
                __stcs((float4*)(gates + (place * 4 + k) * HIDDEN + first_unit) + i % 4,
                       ((float4*)gate[sample][k])[i % 4]);
            }
        }
    }
}
