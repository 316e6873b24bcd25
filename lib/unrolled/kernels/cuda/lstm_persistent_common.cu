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
