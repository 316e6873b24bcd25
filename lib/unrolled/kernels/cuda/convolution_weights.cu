// A warp has one filter, and walks over the windows of some images: SPLIT blocks share out the images in SLICES. It
// keeps the windows whose gradient is not 0. Then its lanes have the places inside the filter; where these are few,
// LANES windows at a time. The pitch lets them read from different banks. Parts are added in groups of GROUP blocks,
// then the groups.
constexpr int ALL = 0xffffffff, TAPS = KH * KW, TALL = (OH - 1) * SH + KH, COLUMNS = (OW - 1) * SW + KW;
constexpr int PITCH = COLUMNS + (KW % 32 - COLUMNS % 32 + 32) % 32, PLANE = TALL * PITCH;
constexpr int WINDOWS = YH * YW, PLACES = (WINDOWS + SLICES - 1) / SLICES, VALUES = C * TAPS + 1;
constexpr int LANES = TAPS <= 16 ? 32 / TAPS : 1, TURNS = (TAPS + 31) / 32, WARPS = BLOCK / 32;
constexpr int TEAMS = (O + WARPS - 1) / WARPS, PARTS = C / PART, SPLITS = (SPLIT + GROUP - 1) / GROUP;

struct Kept { T grad; int corner; };

__device__ void add_up(const T* sums, int filters, int count, T* weight, T* bias) {
    for (int at = threadIdx.x; at < filters * VALUES; at += BLOCK) {
        T whole = 0;
        #pragma unroll 16
        for (int s = 0; s < count; ++s) whole += __ldcg(sums + s * (Index)(O * VALUES) + at);
        int k = at % VALUES, o = at / VALUES;
        if (bias == nullptr) weight[at] = whole;
        else if (k < VALUES - 1) weight[o * (VALUES - 1) + k] = whole;
        else bias[o] = whole;
    }
}

extern "C" __global__ void __launch_bounds__(BLOCK) convolution_weights(
    const T* __restrict__ grad, const unsigned char* __restrict__ routes, const T* __restrict__ x,
    T* __restrict__ weight, T* __restrict__ bias, T* sums, int* counters, Index size) {
    __shared__ T planes[PART * PLANE];
    __shared__ Kept kept[WARPS][32 + 32];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, team = blockIdx.x % TEAMS;
    int part = blockIdx.x / TEAMS % PARTS * PART, split = blockIdx.x / (TEAMS * PARTS), o = team * WARPS + warp;
    int ahead = TAPS <= 16 ? lane / TAPS : 0, offsets[TURNS];
    #pragma unroll
    for (int t = 0; t < TURNS; ++t) {
        int tap = TAPS <= 16 ? lane % TAPS : lane + 32 * t;
        offsets[t] = tap < TAPS ? tap / KW * PITCH + tap % KW : 0;
    }
    T found[PART][TURNS] = {}, total = 0;
    int units = size * SLICES, each = (units + SPLIT - 1) / SPLIT, there = -1;
    for (int unit = split * each; unit < min(units, (split + 1) * each); ++unit) {
        Index image = unit / SLICES;
        if (image != there) {
            __syncthreads();
            for (int at = threadIdx.x; at < PART * PLANE; at += BLOCK) {
                int column = at % PITCH - PW, row = at / PITCH % TALL - PH, channel = part + at / PLANE;
                bool inside = row >= 0 && row < H && column >= 0 && column < W;
                planes[at] = inside ? x[((image * C + channel) * H + row) * W + column] : (T)0;
            }
            __syncthreads();
            there = image;
        }
        int first = unit % SLICES * PLACES, last = min(WINDOWS, first + PLACES);
        if (o < O) for (int start = first; start < last; start += 32) {
            int window = start + lane, corner = 0;
            T g = 0;
            if (window < last) {
                Index of = (image * O + o) * WINDOWS + window;
                int route = routes[of], row = window / YW * TH - RH + route / QW;
                corner = row * SH * PITCH + (window % YW * TW - RW + route % QW) * SW;
                g = grad[of];
            }
            total += g;
            unsigned some = __ballot_sync(ALL, g != 0);
            int count = __popc(some);
            __syncwarp();
            if (g != 0) kept[warp][__popc(some & ((1u << lane) - 1))] = {g, corner};
            kept[warp][count + lane] = {(T)0, 0};
            __syncwarp();
            #pragma unroll 4
            for (int j = 0; j < count; j += LANES) {
                Kept mine = kept[warp][j + ahead];
                #pragma unroll
                for (int c = 0; c < PART; ++c)
                    #pragma unroll
                    for (int t = 0; t < TURNS; ++t)
                        found[c][t] += mine.grad * planes[c * PLANE + mine.corner + offsets[t]];
            }
        }
    }
    T* mine = sums + (split * (Index)O + o) * VALUES;
    for (int far = 16; far > 0; far /= 2) total += __shfl_xor_sync(ALL, total, far);
    if (o < O && part == 0 && lane == 0) mine[C * TAPS] = total;
    #pragma unroll
    for (int c = 0; c < PART; ++c)
        #pragma unroll
        for (int t = 0; t < TURNS; ++t) {
            T whole = found[c][t];
            for (int i = 1; i < LANES; ++i) whole += __shfl_sync(ALL, found[c][t], (lane + i * TAPS) & 31);
            int tap = lane + 32 * t;
            if (o < O && tap < TAPS) mine[(part + c) * TAPS + tap] = whole;
        }
    int group = split / GROUP, count = min(GROUP, SPLIT - group * GROUP), filters = min(WARPS, O - team * WARPS);
    int to = team * WARPS * (VALUES - 1);
    if (!is_last(counters + TEAMS + team * SPLITS + group, count * PARTS)) return;
    T *whole = sums + SPLIT * (Index)(O * VALUES) + team * WARPS * VALUES, *own = sums + team * WARPS * VALUES;
    own += group * (Index)GROUP * (O * VALUES);
    if (SPLITS == 1) return add_up(own, filters, count, weight + to, bias + team * WARPS);
    add_up(own, filters, count, whole + group * (Index)(O * VALUES), nullptr);
    if (is_last(counters + team, SPLITS)) add_up(whole, filters, SPLITS, weight + to, bias + team * WARPS);
}
