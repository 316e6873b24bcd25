"""A dense layer for many samples: products in tiles, float32 throughout, all of a backward pass in one launch.

A block computes a tile of the product. It brings strips of both factors to shared memory, the next pair of strips while
it computes with the last. A thread keeps DOWN x ALONG sums in registers; TEAMS of threads share out a strip. A small
product has few tiles: then SPLIT blocks share the inner sum of one, and the last of them adds their parts up.
"""

from __future__ import annotations

from unrolled.kernels.dense import backward, backward_flops, flops, forward
from unrolled.kernels.kernel import LAST_BLOCK, Kernel, of_blocks

TILES = r"""
constexpr int TEAM = (ROWS / DOWN) * (COLUMNS / ALONG), THREADS = TEAM * TEAMS, OUTPUTS = ROWS * COLUMNS / THREADS;
constexpr int TILE_A = STRIP * (ROWS + 4), TILE_B = STRIP * (COLUMNS + 4), SUMS = TEAMS * ROWS * COLUMNS;
constexpr int SHARED = 2 * (TILE_A + TILE_B) > SUMS ? 2 * (TILE_A + TILE_B) : SUMS;
struct __align__(16) Four { T values[4]; };

// The strip from `k` on of a factor, as strip[k][line]. Its lines lie one after the other; if TURNED, its columns do.
template <bool TURNED, int LINES, int SIZE>
__device__ void fetch(const T* from, T (&held)[LINES * STRIP / THREADS], int first, int k, int last, int inner) {
    #pragma unroll
    for (int i = 0; i < LINES * STRIP / THREADS; ++i) {
        int at = threadIdx.x + i * THREADS;
        int line = first + (TURNED ? at % LINES : at / STRIP), depth = k + (TURNED ? at / LINES : at % STRIP);
        bool inside = line < SIZE && depth < last;
        held[i] = inside ? from[TURNED ? depth * (Index)SIZE + line : line * (Index)inner + depth] : (T)0;
    }
}
template <bool TURNED, int LINES>
__device__ void put(T* strip, const T (&held)[LINES * STRIP / THREADS]) {
    #pragma unroll
    for (int i = 0; i < LINES * STRIP / THREADS; ++i) {
        int at = threadIdx.x + i * THREADS;
        strip[(TURNED ? at / LINES : at % STRIP) * (LINES + 4) + (TURNED ? at % LINES : at / STRIP)] = held[i];
    }
}

// A tile of a (M, K) @ b (K, N): a turned lies as (K, M), b turned as (K, N), else as (N, K). `end` gets each sum.
template <int M, int N, int K, bool TURN_A, bool TURN_B, int SPLIT, class End>
__device__ void tile(const T* a, const T* b, int block, T* parts, int* counters, T* shared, End end) {
    constexpr int WIDE = (N + COLUMNS - 1) / COLUMNS, WHOLE = WIDE * ((M + ROWS - 1) / ROWS);
    constexpr int EACH = ((K + STRIP - 1) / STRIP + SPLIT - 1) / SPLIT * STRIP;
    int number = block % WHOLE, split = block / WHOLE, row = number / WIDE * ROWS, column = number % WIDE * COLUMNS;
    int member = threadIdx.x % TEAM, team = threadIdx.x / TEAM;
    int along = member % (COLUMNS / ALONG) * ALONG, down = member / (COLUMNS / ALONG) * DOWN;
    int k = split * EACH, last = min(K, k + EACH);
    T sums[DOWN][ALONG] = {}, held_a[ROWS * STRIP / THREADS], held_b[COLUMNS * STRIP / THREADS];
    fetch<TURN_A, ROWS, M>(a, held_a, row, k, last, K);
    fetch<TURN_B, COLUMNS, N>(b, held_b, column, k, last, K);
    for (int turn = 0; k < last; turn ^= 1, k += STRIP) {
        T *strip_a = shared + turn * (TILE_A + TILE_B), *strip_b = strip_a + TILE_A;
        put<TURN_A, ROWS>(strip_a, held_a);
        put<TURN_B, COLUMNS>(strip_b, held_b);
        __syncthreads();
        if (k + STRIP < last) {
            fetch<TURN_A, ROWS, M>(a, held_a, row, k + STRIP, last, K);
            fetch<TURN_B, COLUMNS, N>(b, held_b, column, k + STRIP, last, K);
        }
        strip_a += team * (STRIP / TEAMS) * (ROWS + 4) + down;
        strip_b += team * (STRIP / TEAMS) * (COLUMNS + 4) + along;
        #pragma unroll
        for (int depth = 0; depth < STRIP / TEAMS; ++depth) {
            T left[DOWN], right[ALONG];
            #pragma unroll
            for (int i = 0; i < DOWN; i += 4) *(Four*)(left + i) = *(const Four*)(strip_a + depth * (ROWS + 4) + i);
            #pragma unroll
            for (int j = 0; j < ALONG; j += 4)
                *(Four*)(right + j) = *(const Four*)(strip_b + depth * (COLUMNS + 4) + j);
            #pragma unroll
            for (int i = 0; i < DOWN; ++i)
                #pragma unroll
                for (int j = 0; j < ALONG; ++j) sums[i][j] += left[i] * right[j];
        }
    }
    __syncthreads();
    #pragma unroll
    for (int i = 0; i < DOWN; ++i)
        #pragma unroll
        for (int j = 0; j < ALONG; j += 4)
            *(Four*)(shared + (team * ROWS + down + i) * COLUMNS + along + j) = *(const Four*)(sums[i] + j);
    __syncthreads();
    T found[OUTPUTS];  // of this thread, so that neighbours write to neighbours
    #pragma unroll
    for (int i = 0; i < OUTPUTS; ++i) {
        found[i] = shared[threadIdx.x + i * THREADS];
        #pragma unroll
        for (int other = 1; other < TEAMS; ++other)
            found[i] += shared[other * ROWS * COLUMNS + threadIdx.x + i * THREADS];
    }
    if (SPLIT > 1) {
        T* mine = parts + number * (Index)(ROWS * COLUMNS) + threadIdx.x;
        constexpr Index STEP = WHOLE * (Index)(ROWS * COLUMNS);
        #pragma unroll
        for (int i = 0; i < OUTPUTS; ++i) mine[split * STEP + i * THREADS] = found[i];
        if (!is_last(counters + number, SPLIT)) return;
        #pragma unroll
        for (int i = 0; i < OUTPUTS; ++i) found[i] = 0;
        #pragma unroll (OUTPUTS > 8 ? 2 : 8)
        for (int s = 0; s < SPLIT; ++s)
            #pragma unroll
            for (int i = 0; i < OUTPUTS; ++i) found[i] += __ldcg(mine + s * STEP + i * THREADS);
    }
    #pragma unroll
    for (int i = 0; i < OUTPUTS; ++i) {
        int y = row + (threadIdx.x + i * THREADS) / COLUMNS, z = column + (threadIdx.x + i * THREADS) % COLUMNS;
        if (y < M && z < N) end(y, z, found[i]);
    }
}
"""

DENSE_TILES = r"""
extern "C" __global__ void __launch_bounds__(BLOCK) dense_tiles(
    const T* __restrict__ x, const T* __restrict__ weight, const T* __restrict__ bias, T* __restrict__ y, T* parts,
    int* counters, Index size) {
    __shared__ __align__(16) T shared[SHARED];
    tile<BATCH, O, D, false, false, SPLIT>(x, weight, blockIdx.x, parts, counters, shared, [=](int n, int o, T sum) {
        sum += bias[o];
        y[n * (Index)O + o] = !RELU || sum > 0 || sum != sum ? sum : (T)0;
    });
}
"""

# The first blocks have the gradient by x, the next the gradient by the weight, the last that by the bias.
DENSE_TILES_BACKWARD = r"""
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
"""


dense_tiles = Kernel("dense_tiles", LAST_BLOCK + TILES + DENSE_TILES, forward, flops, threads=of_blocks)
"""x (N, D), weight (O, D), bias to y (N, O). Scratch: `parts`, ROWS * COLUMNS for each tile and split, and counters."""
dense_tiles_backward = Kernel(
    "dense_tiles_backward", LAST_BLOCK + TILES + DENSE_TILES_BACKWARD, backward, backward_flops, threads=of_blocks
)
"""The gradient by y (N, O), x and weight to those by x, weight and bias. Scratch as above, for both products."""
