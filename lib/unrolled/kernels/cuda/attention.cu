constexpr int DOWN = 16, ACROSS = 8, THREADS = DOWN * ACROSS;  // as in the host's: a thread has ROWS x EACH scores
constexpr int QUERIES = DOWN * ROWS, KEYS = D <= 64 ? 64 : 32, EACH = KEYS / ACROSS;
constexpr int WIDTH = (D + 31) / 32 * 32, FOURS = WIDTH / 32;  // of a row; float4s of an output's row that a thread has
constexpr int PITCH = WIDTH + 4, WEIGHTS = KEYS + 8;  // between rows in shared memory: threads then meet in no bank

// 16 bytes into shared memory, or zeros, while the thread goes on where the GPU can: `arrive` waits for them.
__device__ __forceinline__ void copy16(float* to, const void* from, bool there) {
#if __CUDA_ARCH__ >= 800
    unsigned at = (unsigned)__cvta_generic_to_shared(to);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" :: "r"(at), "l"(from), "r"(there ? 16 : 0) : "memory");
#else
    float4 nothing = {0, 0, 0, 0};
    *(float4*)to = there ? *(const float4*)from : nothing;
#endif
}
// All copies are there, of all threads.
__device__ __forceinline__ void arrive() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
    __syncthreads();
}
// Rows of D values to rows of WIDTH floats; what is not there becomes 0.
__device__ __forceinline__ void load(float* to, int pitch, int rows, const T* from, int there) {
    if (sizeof(T) == 4 && D % 4 == 0 && (size_t)from % 16 == 0) {
        #pragma unroll 8
        for (int i = threadIdx.x * 4; i < rows * WIDTH; i += THREADS * 4) {
            int row = i / WIDTH, d = i % WIDTH;
            bool some = row < there && d < D;
            copy16(to + row * pitch + d, some ? from + row * D + d : from, some);
        }
        return;
    }
    #pragma unroll 8
    for (int i = threadIdx.x; i < rows * WIDTH; i += THREADS) {
        int row = i / WIDTH, d = i % WIDTH;
        to[row * pitch + d] = row < there && d < D ? (float)from[row * D + d] : 0;
    }
}
// The eight threads of a row are neighbours in a warp.
__device__ __forceinline__ float largest_of_row(float x) {
    for (int far = ACROSS / 2; far > 0; far /= 2) x = fmaxf(x, __shfl_xor_sync(0xffffffff, x, far));
    return x;
}
__device__ __forceinline__ float sum_of_row(float x) {
    for (int far = ACROSS / 2; far > 0; far /= 2) x += __shfl_xor_sync(0xffffffff, x, far);
    return x;
}
__device__ __forceinline__ void add(float* sums, float weight, float4 value) {
    sums[0] += weight * value.x;
    sums[1] += weight * value.y;
    sums[2] += weight * value.z;
    sums[3] += weight * value.w;
}

extern "C" __global__ void __launch_bounds__(THREADS) attention(
    const T* __restrict__ q, const T* __restrict__ k, const T* __restrict__ v, const long long* __restrict__ lengths,
    T* __restrict__ y, float* __restrict__ logsumexp, Index size, double queries, double keys) {
    extern __shared__ float4 memory[];
    float* own = (float*)memory;                // QUERIES x PITCH
    float* others = own + QUERIES * PITCH;      // KEYS x PITCH
    float* values = others + KEYS * PITCH;      // KEYS x WIDTH
    float* weights = values + KEYS * WIDTH;     // QUERIES x WEIGHTS: a warp reads what it wrote
    const int t = (int)queries, s = (int)keys, blocks = (t + QUERIES - 1) / QUERIES;
    const int head = blockIdx.x / blocks, first = (blocks - 1 - blockIdx.x % blocks) * QUERIES;  // the longest first
    const int x = threadIdx.x % ACROSS, down = threadIdx.x / ACROSS;  // keys x + 8 * j, queries down + 16 * i
    const long long start = (long long)head * t + first, length = lengths[head / HEADS];
    int stop = length < s ? (length < 0 ? 0 : (int)length) : s;
    if (CAUSAL) stop = min(stop, first + QUERIES);
    k += (long long)head * s * D;
    v += (long long)head * s * D;
    const float scale = 1.44269504f / sqrtf((float)D);  // exponentials are powers of 2: exp(x) = 2^(x * log2(e))
    load(own, PITCH, QUERIES, q + start * D, t - first);
    load(others, PITCH, KEYS, k, s);

    float sums[ROWS][FOURS * 4] = {}, largest[ROWS], total[ROWS] = {};
    #pragma unroll
    for (int i = 0; i < ROWS; i++) largest[i] = -1.7e38f;  // finite: -inf less -inf would be NaN
    for (int key = 0; key < stop; key += KEYS) {
        arrive();                               // the keys are there, and all are done with the values before
        load(values, WIDTH, KEYS, v + (long long)key * D, s - key);
        float score[ROWS][EACH] = {};
        #pragma unroll 2
        for (int d = 0; d < D; d += 4) {
            float4 other[EACH];
            #pragma unroll
            for (int j = 0; j < EACH; j++) other[j] = *(const float4*)(others + (x + ACROSS * j) * PITCH + d);
            #pragma unroll
            for (int i = 0; i < ROWS; i++) {
                float4 a = *(const float4*)(own + (down + DOWN * i) * PITCH + d);
                #pragma unroll
                for (int j = 0; j < EACH; j++) {
                    float4 b = other[j];
                    score[i][j] += a.x * b.x;   // one by one: each is a single instruction then
                    score[i][j] += a.y * b.y;
                    score[i][j] += a.z * b.z;
                    score[i][j] += a.w * b.w;
                }
            }
        }
        #pragma unroll
        for (int i = 0; i < ROWS; i++) {
            int row = down + DOWN * i, seen = CAUSAL ? min(stop, first + row + 1) : stop;
            float before = largest[i], more = 0;
            #pragma unroll
            for (int j = 0; j < EACH; j++) {
                if (key + x + ACROSS * j >= seen) score[i][j] = __int_as_float(0xff800000);  // minus infinity
                largest[i] = fmaxf(largest[i], score[i][j]);
            }
            largest[i] = largest_of_row(largest[i]);
            float scaled = largest[i] * scale, faded = exp2f(before * scale - scaled);  // what sums so far are worth
            #pragma unroll
            for (int j = 0; j < EACH; j++) {
                float weight = exp2f(score[i][j] * scale - scaled);
                more += weight;
                weights[row * WEIGHTS + x + ACROSS * j] = weight;
            }
            total[i] = total[i] * faded + more;        // this thread's keys
            #pragma unroll
            for (int c = 0; c < FOURS * 4; c++) sums[i][c] *= faded;
        }
        arrive();                               // the values are there, and all are done with the keys
        if (key + KEYS < stop) load(others, PITCH, KEYS, k + (long long)(key + KEYS) * D, s - key - KEYS);
        #pragma unroll 2
        for (int j = 0; j < KEYS; j += 4) {
            float4 weight[ROWS];
            #pragma unroll
            for (int i = 0; i < ROWS; i++) weight[i] = *(const float4*)(weights + (down + DOWN * i) * WEIGHTS + j);
            #pragma unroll
            for (int c = 0; c < FOURS; c++) {
                const float* at = values + j * WIDTH + c * 32 + x * 4;
                float4 v0 = *(const float4*)at, v1 = *(const float4*)(at + WIDTH);
                float4 v2 = *(const float4*)(at + 2 * WIDTH), v3 = *(const float4*)(at + 3 * WIDTH);
                #pragma unroll
                for (int i = 0; i < ROWS; i++) {
                    add(sums[i] + c * 4, weight[i].x, v0);
                    add(sums[i] + c * 4, weight[i].y, v1);
                    add(sums[i] + c * 4, weight[i].z, v2);
                    add(sums[i] + c * 4, weight[i].w, v3);
                }
            }
        }
    }
    y += start * D;
    #pragma unroll
    for (int i = 0; i < ROWS; i++) {
        int row = down + DOWN * i;
        float all = sum_of_row(total[i]), share = all == 0 ? 0 : 1 / all;  // 0: a query that may look at no key
        if (first + row >= t) continue;
        #pragma unroll
        for (int c = 0; c < FOURS * 4; c++) {
            int d = c / 4 * 32 + x * 4 + c % 4;
            if (d < D) y[row * D + d] = sums[i][c] * share;
        }
        if (x == 0)
            logsumexp[start + row] = all == 0 ? __int_as_float(0x7f800000) : (largest[i] * scale + log2f(all)) * 0.693147181f;
    }
}
