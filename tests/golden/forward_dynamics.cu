// 39 operations, float64; of q (2), v (2), tau (2)

template <int BYTES>  // into shared memory: they are there after phipsi_arrived
__device__ __forceinline__ void phipsi_fetch(void *to, const void *from) {
#if __CUDA_ARCH__ >= 800
  const unsigned at = (unsigned)__cvta_generic_to_shared(to);
  if (BYTES == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at), "l"(from) : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(at), "l"(from), "n"(BYTES)
                 : "memory");
  }
#else
  if (BYTES == 16) {
    *(double2 *)to = *(const double2 *)from;
  } else {
    *(double *)to = *(const double *)from;
  }
#endif
}

__device__ __forceinline__ void phipsi_arrived() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_all;" ::: "memory");
#endif
  __syncwarp();
}

template <int N, int P>  // N columns of 32 rows into shared memory, P apart; the last row repeated
__device__ __noinline__ void phipsi_load_any(
    double *tile, const double *from, long long stride, long long first, long long rows, int lane) {
#pragma unroll 1
  for (int i = lane; i < 32 * N; i += 32) {
    const long long row = first + i / N < rows ? first + i / N : rows - 1;
    phipsi_fetch<8>(tile + i / N * P + i % N, from + row * stride + i % N);
  }
}

template <int N, int P>
__device__ __forceinline__ void phipsi_store_part(
    const double *tile, double *to, long long stride, long long first, long long rows, int lane) {
#pragma unroll 1
  for (int i = lane; i < 32 * N; i += 32) {
    if (first + i / N < rows) to[(first + i / N) * stride + i % N] = tile[i / N * P + i % N];
  }
}

template <int N, int P>
__device__ __noinline__ void phipsi_store_any(
    const double *tile, double *to, long long stride, long long first, long long rows, int lane) {
  phipsi_store_part<N, P>(tile, to, stride, first, rows, lane);
}

template <int N, int P>  // a whole array, 16 bytes at a time if it is one block
__device__ __forceinline__ void phipsi_load(
    double *tile, const double *from, long long stride, long long first, long long rows, int lane) {
  if (P == N && stride == N && first + 32 <= rows && ((size_t)from & 15) == 0) {
#pragma unroll 1
    for (int i = lane; i < 32 * N / 2; i += 32)
      phipsi_fetch<16>((double2 *)tile + i, (const double2 *)(from + first * N) + i);
  } else {
    phipsi_load_any<N, P>(tile, from, stride, first, rows, lane);
  }
}

template <int N, int P>
__device__ __forceinline__ void phipsi_store(
    const double *tile, double *to, long long stride, long long first, long long rows, int lane) {
  if (P == N && stride == N && first + 32 <= rows && ((size_t)to & 15) == 0) {
#pragma unroll 1
    for (int i = lane; i < 32 * N / 2; i += 32)
      ((double2 *)(to + first * N))[i] = ((const double2 *)tile)[i];
  } else {
    phipsi_store_any<N, P>(tile, to, stride, first, rows, lane);
  }
}

__device__ __forceinline__ double phipsi_signed(double x, int sign) {
  return __hiloint2double(__double2hiint(x) ^ (sign & 0x80000000), __double2loint(x));
}

__device__ __noinline__ double2 phipsi_huge(double x) {
  double2 both;
  sincos(x, &both.x, &both.y);
  return both;
}

__device__ __forceinline__ void phipsi_sincos(double x, double *sine, double *cosine) {
  const double shifted = fma(x, 0.636619772368, 6.75539944106e+15);
  const double n = shifted - 6.75539944106e+15;
  int k = __double2loint(shifted);
  double r = fma(n, (-1.57079632679), x);
  r = fma(n, (-6.12323399574e-17), r);
  double z = r * r;
  r = fma(n, (-1.08285667392e-32), r);
  if (fabs(x) > 1000000) {
    const double2 both = phipsi_huge(x);
    *sine = both.x;
    *cosine = both.y;
  } else {
  double s = fma(z, fma(z, fma(z, fma(z, fma(z, 1.58962271494e-10, (-2.50507477137e-08)), 2.75573136211e-06), (-0.000198412698296)), 0.00833333333332), (-0.166666666667));
  double c = fma(z, fma(z, fma(z, fma(z, fma(z, fma(z, (-1.13596678049e-11), 2.08757236462e-09), (-2.7557314355e-07)), 2.48015872895e-05), (-0.00138888888889)), 0.0416666666667), (-0.5));
  s = fma(r, fma(z, s, 2.22507385851e-308), r);
  c = fma(z, c, 1);
  const double a = k & 1 ? c : s, b = k & 1 ? s : c;
  *sine = phipsi_signed(a, k << 30);
  *cosine = phipsi_signed(b, (k + 1) << 30);
  }
}

struct Given {
  long long rows;
  const double *__restrict__ a0;
  long long s0;
  const double *__restrict__ a1;
  long long s1;
  const double *__restrict__ a2;
  long long s2;
  double *__restrict__ a3;
  long long s3;
  double *__restrict__ w;
};

__constant__ double fixed[13] = {9.81, (-0.3), (-9.81), (-0.15), 0.15, 4.96277915633, 0.744416873449, (-0.744416873449), 0.09, 0.120225, 0.3, 4.4145, 33.0851943755};

extern "C" __global__ void __launch_bounds__(64) phipsi_kernel(const Given given) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  __shared__ __align__(16) double tiles[2][192];
  double *const tile = tiles[warp];
  const long long first = (long long)blockIdx.x * blockDim.x + 32 * warp;
  if (first >= given.rows) return;
  {
  double *const a0 = tile + 0 + 2 * lane;  // q
  double *const a1 = tile + 64 + 2 * lane;  // v
  double *const a2 = tile + 128 + 2 * lane;  // tau
  double *const a3 = tile + 0 + 2 * lane;  // forward_dynamics
  phipsi_load<2, 2>(tile + 0, given.a0, given.s0, first, given.rows, lane);
  phipsi_load<2, 2>(tile + 64, given.a1, given.s1, first, given.rows, lane);
  phipsi_load<2, 2>(tile + 128, given.a2, given.s2, first, given.rows, lane);
  phipsi_arrived();
  const double x0 = a0[0];
  double x1, x2;
  phipsi_sincos(x0, &x1, &x2);
  const double x3 = fixed[0] * x1;
  const double x4 = a1[0];
  const double x5 = x4 * x4;
  const double x6 = fixed[1] * x5;
  const double x7 = fma(fixed[2], x2, x6);
  const double x8 = a0[1];
  double x9, x10;
  phipsi_sincos(x8, &x9, &x10);
  const double x11 = x10 * x3;
  const double x12 = fma(-x9, x7, x11);
  const double x13 = a1[1];
  const double x14 = x4 + x13;
  const double x15 = x14 * x14;
  const double x16 = fixed[3] * x15;
  const double x17 = a2[1];
  const double x18 = fma(-fixed[4], x12, x17);
  const double x19 = fixed[5] * x18;
  const double x20 = fixed[6] * x9;
  const double x21 = fma(x9, x20, fixed[7]);
  const double x22 = fma(fixed[8], x21, fixed[9]);
  const double x23 = 1 / x22;
  const double x24 = x10 * x19;
  const double x25 = fma(x9, x16, x24);
  const double x26 = fma(fixed[10], x25, x17);
  const double x27 = fma(fixed[11], x1, x26);
  const double x28 = a2[0];
  const double x29 = x28 - x27;
  const double x30 = x23 * x29;
  a3[0] = x30;
  const double x31 = fixed[10] * x30;
  const double x32 = x10 * x31;
  const double x33 = fma(fixed[5], x32, x30);
  const double x34 = fma(fixed[12], x18, -x33);
  a3[1] = x34;
  __syncwarp();
  phipsi_store<2, 2>(tile + 0, given.a3, given.s3, first, given.rows, lane);
  }
}
