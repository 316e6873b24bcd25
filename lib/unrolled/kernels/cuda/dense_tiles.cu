extern "C" __global__ void __launch_bounds__(BLOCK) dense_tiles(
    const T* __restrict__ x, const T* __restrict__ weight, const T* __restrict__ bias, T* __restrict__ y, T* parts,
    int* counters, Index size) {
    __shared__ __align__(16) T shared[SHARED];
    tile<BATCH, O, D, false, false, SPLIT>(x, weight, blockIdx.x, parts, counters, shared, [=](int n, int o, T sum) {
        sum += bias[o];
        y[n * (Index)O + o] = !RELU || sum > 0 || sum != sum ? sum : (T)0;
    });
}
