"""Convolution, bias, ReLU and max-pooling in one launch, and the gradient of its weights in another.

The map between convolution and pooling is never written. A thread computes all places of one pooling window, keeps the
largest, and notes where it was: the route that the gradient takes back. Only these places have a gradient, so the
weights' is a sum over one place in KH * KW of the window.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from unrolled.kernels.columns import check_windows
from unrolled.kernels.kernel import LAST_BLOCK, Arrays, Kernel, Options, of_blocks

# Geometry: C x H x W in, O filters KH x KW of stride SH, SW and padding PH, PW give OH x OW; windows QH x QW of stride
# TH, TW and padding RH, RW give YH x YW. A block has an image (padded, PART channels at a time, in shared memory), one
# of SLICES of the windows and one of SHARES of the filters: GROUPS times EACH; a thread has EACH of them at one window.
POOLED_CONVOLUTION = r"""
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
"""

# A warp has one filter, and walks over the windows of some images: SPLIT blocks share out the images in SLICES. It
# keeps the windows whose gradient is not 0. Then its lanes have the places inside the filter; where these are few,
# LANES windows at a time. The pitch lets them read from different banks. Parts are added in groups of GROUP blocks,
# then the groups.
CONVOLUTION_WEIGHTS = r"""
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
"""


def _windows(x: Any, weight: Any, options: Options) -> Any:
    """The windows (N, C, OH, OW, KH, KW) of x (N, C, H, W), padded, that meet weight (O, C, KH, KW)."""
    rows, columns = options["ph"], options["pw"]
    padded = np.pad(x, ((0, 0), (0, 0), (rows, rows), (columns, columns)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, weight.shape[2:], (2, 3))
    return windows[:, :, :: options["sh"], :: options["sw"]]


def _pooled_convolution(inputs: Arrays, outputs: Arrays, options: Options) -> None:
    (x, weight, bias), (y, routes) = inputs, outputs
    check_windows(options, x)
    values = np.einsum("ncyxij,ocij->noyx", _windows(x, weight, options), weight, optimize=True)
    values = values + bias[:, None, None]
    room = options["rh"], options["rw"]
    values = np.pad(values, ((0, 0), (0, 0), *((r, r) for r in room)), constant_values=-np.inf)
    windows = np.lib.stride_tricks.sliding_window_view(values, (options["qh"], options["qw"]), (2, 3))
    windows = windows[:, :, :: options["th"], :: options["tw"]].reshape(*y.shape, -1)
    routes[...] = windows.argmax(axis=-1)  # the first NaN, else the first of the largest
    largest = windows.max(axis=-1)
    y[...] = np.maximum(largest, 0) if options["relu"] else largest


def _convolution_weights(inputs: Arrays, outputs: Arrays, options: Options) -> None:
    (grad, routes, x), (weight, bias, *_) = inputs, outputs
    check_windows(options, x)
    dense = unpooled(grad, routes, options)
    weight[...] = np.einsum("ncyxij,noyx->ocij", _windows(x, weight, options), dense, optimize=True)
    bias[...] = grad.sum(axis=(0, 2, 3))


def unpooled(grad: Any, routes: Any, options: Options) -> Any:
    """Return the gradient by the convolution's map (N, O, OH, OW)."""
    dense = np.zeros((*grad.shape[:2], options["oh"], options["ow"]), grad.dtype)
    rows = np.arange(options["yh"])[:, None] * options["th"] - options["rh"] + routes // options["qw"]
    columns = np.arange(options["yw"]) * options["tw"] - options["rw"] + routes % options["qw"]
    for places, size in zip((rows, columns), dense.shape[2:], strict=True):
        if places.size and not 0 <= places.min() <= places.max() < size:
            raise ValueError(f"routes lead out of maps of shape {dense.shape}")
    images, filters = np.ogrid[: grad.shape[0], : grad.shape[1]]
    np.add.at(dense, (images[..., None, None], filters[..., None, None], rows, columns), grad)
    return dense


def _flops(inputs: Arrays, outputs: Arrays, options: Options) -> int:
    map_size = outputs[0].shape[0] * options["o"] * options["oh"] * options["ow"]
    return int(2 * map_size * options["c"] * options["kh"] * options["kw"])


pooled_convolution = Kernel("pooled_convolution", POOLED_CONVOLUTION, _pooled_convolution, _flops, threads=of_blocks)
"""x (N, C, H, W), weight, bias to y (N, O, YH, YW) and routes of the same shape, uint8: places inside the windows."""
convolution_weights = Kernel(
    "convolution_weights",
    LAST_BLOCK + CONVOLUTION_WEIGHTS,
    _convolution_weights,
    lambda inputs, outputs, options: int(2 * inputs[0].size * options["c"] * options["kh"] * options["kw"]),
    size=lambda inputs, outputs: int(inputs[2].shape[0]),
    threads=of_blocks,
)
"""grad (N, O, YH, YW), routes, x to the gradients of weight and bias.

Scratch: sums of O * (C * KH * KW + 1) values for each split and each group of splits, and counters, int32, one for each
team of warps and for each of its groups, 0 before and after.
"""
