"""An LSTM layer's whole way through time in one launch: the recurrent weights never leave the multiprocessors.

A step's product is small, and between two launches the weights would have to be read again. So the kernel stays: each
block keeps the weights of 16 hidden units in its registers, for 16 samples, and goes from step to step. Before a step
it waits until the other blocks of its samples have written their part of the step before: a counter in the GPU's memory
tells. The samples of a block are worked on in two halves, so that one half's numbers travel while the other is
computed. The idea is that of persistent RNNs (Diamos and others, 2016); the kernels are ours.

All blocks of a launch have to be at work at the same time, or they would wait for ever. A cooperative launch is one
that CUDA refuses unless that is so. Both kernels are for float32 alone, and need 64 * k <= 512 hidden units.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import inf

import numpy as np

from unrolled.device import Array, Module, array_module
from unrolled.kernels.kernel import Arrays, Constants, Kernel, Options, code, is_cupy, runs_on
from unrolled.kernels.lstm import gated, gated_backward

UNITS = SAMPLES = 16  # of a block
HALVES, THREADS = 2, 256
STATIC = 4096  # bytes of shared memory that are not counted by hidden units, rounded up
MOST_HIDDEN = 512  # 128 weights a thread: with more they would not fit in its registers

COMMON = r"""
constexpr int THREADS = 256, UNITS = 16, SAMPLES = 16, HALVES = 2, ROWS = SAMPLES / HALVES;  // as in the host's
constexpr int PARTS = HIDDEN / 64;     // quarters of a float4 that a thread reads of a row
constexpr int BLOCKS = HIDDEN / UNITS; // blocks that share their samples

__device__ __forceinline__ void await(const unsigned* arrived, unsigned wanted) {
    unsigned seen;
    do asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(arrived) : "memory");
    while (seen < wanted);
}
__device__ __forceinline__ void arrive(unsigned* arrived) {
    asm volatile("red.release.gpu.global.add.u32 [%0], 1;" :: "l"(arrived) : "memory");
}
// Other blocks wrote what is read here, so it has to come from the L2 cache, which all share.
__device__ __forceinline__ void fetch(float4* to, const float4* from) {
#if __CUDA_ARCH__ >= 800
    unsigned at = (unsigned)__cvta_generic_to_shared(to);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(at), "l"(from) : "memory");
#else
    *to = __ldcg(from);
#endif
}
__device__ __forceinline__ void fetched() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}
__device__ __forceinline__ float sigmoid(float x) { return 1 / (1 + expf(-x)); }
__device__ __forceinline__ float dot(float4 a, float4 b) { return a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w; }

// values[i] of all lanes are added up, and lane i gets the sum of the values[i]: half of the values leave each round.
template <int LANES> __device__ __forceinline__ float added(float* values, int lane) {
    #pragma unroll
    for (int half = LANES / 2; half; half /= 2)
        #pragma unroll
        for (int i = 0; i < half; i++) {
            float sent = lane & half ? values[i] : values[i + half], kept = lane & half ? values[i + half] : values[i];
            values[i] = kept + __shfl_xor_sync(0xffffffffu, sent, half);
        }
    return values[0];
}
"""
FORWARD = r"""
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
"""
BACKWARD = r"""
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
"""


@dataclass(frozen=True, eq=False)
class Persistent(Kernel):
    """A kernel whose blocks wait for each other. `inputs[0]` is (T, N, ...); constants are {"hidden": H}.

    `shared` is how many floats of shared memory a block needs for each sample and hidden unit.
    """

    shared: int = 1

    def on_cupy(self, inputs: Arrays, outputs: Arrays, constants: Constants, floats: Options) -> None:
        """Launch it, more than once if there are more samples than the GPU has room for at a time."""
        import cupy

        hidden, (steps, n) = constants["hidden"], inputs[0].shape[:2]
        blocks, bytes_shared = hidden // UNITS, SAMPLES // HALVES * hidden * 4 * self.shared
        if (launch := self._compiled.get(hidden)) is None:
            source = code(self, constants, "f", wide=False)
            launch = cupy.RawKernel(source, self.name, ("--std=c++17",), enable_cooperative_groups=True)
            launch.max_dynamic_shared_size_bytes = bytes_shared
            self._compiled[hidden] = launch
        room = SAMPLES * (_room_on_cupy()[0] // blocks)
        for first in range(0, n, room):
            groups = -(-min(room, n - first) // SAMPLES)
            arrived = cupy.zeros(groups * HALVES, dtype=cupy.uint32)
            sizes = cupy.int32(steps), cupy.int32(n), cupy.int32(first)
            launch((blocks, groups), (THREADS,), (*inputs, *outputs, arrived, *sizes), shared_mem=bytes_shared)


def persists(x: Array, hidden: int) -> bool:
    """Return whether an LSTM of this hidden size can stay on the GPU of x from its first step to its last."""
    module = array_module(x)
    if x.dtype.char != "f" or not runs_on(module) or hidden % 64 or not 0 < hidden <= MOST_HIDDEN:
        return False
    multiprocessors, shared = _room_on_cupy() if is_cupy(module) else _read_room(module)
    return hidden // UNITS <= multiprocessors and SAMPLES // HALVES * hidden * 4 * 4 + STATIC <= shared


@cache
def _room_on_cupy() -> tuple[int, float]:
    """Kept: CUDA takes long to tell."""
    import cupy

    return _read_room(cupy)


def _read_room(module: Module) -> tuple[int, float]:
    runtime = getattr(getattr(module, "cuda", None), "runtime", None)
    properties = {} if runtime is None else runtime.getDeviceProperties(0)
    return int(properties.get("multiProcessorCount", 0)), properties.get("sharedMemPerBlockOptin", inf)


def _forward(inputs: Arrays, outputs: Arrays, options: Options) -> None:
    (sums_x, weight, bias, h, c), (y, cells, gates) = inputs, outputs
    for t in range(len(y)):
        c, h = gated(np.add(sums_x[t] + bias, h @ weight.T, out=gates[t]), c)
        cells[t], y[t] = c, h


def _backward(inputs: Arrays, outputs: Arrays, options: Options) -> None:
    (grad, cells, gates, weight, c_first, grad_h, grad_c), (grad_sums, grad_h_first, grad_c_first) = inputs, outputs
    for t in reversed(range(len(grad))):
        c_before = cells[t - 1] if t else c_first
        grad_c = gated_backward((grad_h + grad[t], grad_c), gates[t], cells[t], c_before, grad_sums[t])
        grad_h = grad_sums[t] @ weight
    grad_h_first[...], grad_c_first[...] = grad_h, grad_c


def _flops(inputs: Arrays, outputs: Arrays, options: Options) -> int:
    steps, n = inputs[0].shape[:2]
    return int(8 * steps * n * options["hidden"] ** 2)


lstm_persistent = Persistent("lstm_persistent", COMMON + FORWARD, _forward, _flops, is_product=True)
"""(sums_x (T, N, 4 * H), weight_hh, bias, h, c) to (y, c, gates) of all steps, as in `ops.LSTMGates`."""
lstm_persistent_backward = Persistent(
    "lstm_persistent_backward", COMMON + BACKWARD, _backward, _flops, is_product=True, shared=4
)
"""(grad (T, N, H), c, gates, weight_hh, c before the first step, gradients by the last h and c) to the gradients by the
sums (T, N, 4 * H), and by h and c before the first step."""
