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
