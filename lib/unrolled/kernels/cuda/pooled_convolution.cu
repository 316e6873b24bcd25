// Geometry: C x H x W in, O filters KH x KW of stride SH, SW and padding PH, PW give OH x OW; windows QH x QW of stride
// TH, TW and padding RH, RW give YH x YW. A block has an image (padded, PART channels at a time, in shared memory), one
// of SLICES of the windows and one of SHARES of the filters: GROUPS times EACH; a thread has EACH of them at one window.
constexpr int ROWS = (QH - 1) * SH + KH, COLUMNS = (QW - 1) * SW + KW, DOWN = TH * SH, ALONG = TW * SW;
constexpr int WIDE = ALONG % 4 == 0 ? 4 : ALONG % 2 == 0 ? 2 : 1;  // values that a thread can load at once
constexpr int LOADED = (COLUMNS + WIDE - 1) / WIDE * WIDE;
constexpr int TALL = (YH - 1) * DOWN + ROWS, PITCH = ((YW - 1) * ALONG + LOADED + 3) / 4 * 4;
constexpr int TOP = RH * SH + PH, LEFT = RW * SW + PW, TAPS = KH * KW;
constexpr int WINDOWS = YH * YW, PLACES = (WINDOWS + SLICES - 1) / SLICES;

template <int COUNT> struct __align__(COUNT * sizeof(T)) Several { T values[COUNT]; };

extern "C" __global__ void __launch_bounds__(BLOCK) pooled_convolution(
    const T* __restrict__ x, const T* __restrict__ weight, const T* __restrict__ bias, T* __restrict__ y,
    unsigned char* __restrict__ routes, Index size) {
    __shared__ __align__(16) T planes[PART * TALL * PITCH];
    __shared__ T filters[GROUPS * EACH * PART * TAPS];
    int slice = blockIdx.x % SLICES, first = blockIdx.x / SLICES % SHARES * (GROUPS * EACH);
    Index image = blockIdx.x / (SLICES * SHARES);
    int group = threadIdx.x / PLACES, window = slice * PLACES + threadIdx.x % PLACES;
    bool works = group < GROUPS && window < WINDOWS;
    int top = window / YW, left = window % YW;
    T sums[EACH][QH][QW] = {};
    for (int part = 0; part < C; part += PART) {
        __syncthreads();
        for (int at = threadIdx.x; at < PART * TALL * PITCH; at += BLOCK) {
            int column = at % PITCH - LEFT, row = at / PITCH % TALL - TOP, channel = part + at / (PITCH * TALL);
            bool inside = row >= 0 && row < H && column >= 0 && column < W;
            planes[at] = inside ? x[((image * C + channel) * H + row) * W + column] : (T)0;
        }
        for (int at = threadIdx.x; at < GROUPS * EACH * PART * TAPS; at += BLOCK) {
            int o = first + at / (PART * TAPS);
            filters[at] = o < O ? weight[(o * C + part) * TAPS + at % (PART * TAPS)] : (T)0;
        }
        __syncthreads();
        if (!works) continue;
        for (int c = 0; c < PART; ++c) {
            const T* corner = planes + (c * TALL + top * DOWN) * PITCH + left * ALONG;
            const T* taps = filters + (group * EACH * PART + c) * TAPS;
            #pragma unroll
            for (int i = 0; i < ROWS; ++i) {
                T row[LOADED];
                #pragma unroll
                for (int j = 0; j < LOADED; j += WIDE)
                    *(Several<WIDE>*)(row + j) = *(const Several<WIDE>*)(corner + i * PITCH + j);
                #pragma unroll
                for (int q = 0; q < QH; ++q)
                    if (i >= q * SH && i < q * SH + KH) {
                        #pragma unroll
                        for (int f = 0; f < EACH; ++f)
                            #pragma unroll
                            for (int j = 0; j < KW; ++j) {
                                T tap = taps[f * PART * TAPS + (i - q * SH) * KW + j];
                                #pragma unroll
                                for (int r = 0; r < QW; ++r) sums[f][q][r] += tap * row[r * SW + j];
                            }
                    }
            }
        }
    }
    if (!works) return;
    #pragma unroll
    for (int f = 0; f < EACH; ++f) {
        int o = first + group * EACH + f, route = -1;
        if (o >= O) return;
        T largest = 0, offset = bias[o];
        #pragma unroll
        for (int q = 0; q < QH; ++q)
            #pragma unroll
            for (int r = 0; r < QW; ++r) {
                int row = top * TH - RH + q, column = left * TW - RW + r;
                if ((RH > 0 && (row < 0 || row >= OH)) || (RW > 0 && (column < 0 || column >= OW))) continue;
                T value = sums[f][q][r] + offset;
                if (route < 0 || value > largest || (value != value && largest == largest)) {
                    largest = value;
                    route = q * QW + r;
                }
            }
        Index to = (image * O + o) * WINDOWS + window;
        y[to] = !RELU || largest > 0 || largest != largest ? largest : (T)0;
        routes[to] = route;
    }
}
