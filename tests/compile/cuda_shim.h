// CUDA's language on a CPU: the 32 threads of a warp are threads that meet at __syncwarp.
#include <math.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>

#include <thread>
#include <vector>

#define __global__
#define __device__
#define __constant__
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __shared__ static
#define __align__(n) __attribute__((aligned(n)))
#define __launch_bounds__(...)

struct Index {
  unsigned x;
};
static thread_local Index threadIdx;
static Index blockIdx, blockDim, gridDim;
static pthread_barrier_t meeting;

static void __syncwarp() { pthread_barrier_wait(&meeting); }

struct __align__(16) float4 {
  float x, y, z, w;
};
struct float2 {
  float x, y;
};
struct __align__(16) double2 {
  double x, y;
};

static int __float_as_int(float x) {
  int y;
  memcpy(&y, &x, 4);
  return y;
}
static float __int_as_float(int x) {
  float y;
  memcpy(&y, &x, 4);
  return y;
}
static int __double2loint(double x) {
  int y[2];
  memcpy(y, &x, 8);
  return y[0];
}
static int __double2hiint(double x) {
  int y[2];
  memcpy(y, &x, 8);
  return y[1];
}
static double __hiloint2double(int high, int low) {
  const int x[2] = {low, high};
  double y;
  memcpy(&y, x, 8);
  return y;
}
static unsigned __funnelshift_l(unsigned low, unsigned high, unsigned by) {
  return by & 31 ? high << (by & 31) | low >> (32 - (by & 31)) : high;
}

// Shared memory is static, so warps run one after the other; what is read before it is written in
// it, or in a workspace, is not a number.
template <class Kernel, class Given>
static void launch(Kernel kernel, const Given &given, int blocks, int threads) {
  gridDim.x = blocks;
  blockDim.x = threads;
  pthread_barrier_init(&meeting, nullptr, 32);
  std::vector<std::thread> warp;
  for (int lane = 0; lane < 32; ++lane) {
    warp.emplace_back([=] {
      for (int block = 0; block < blocks; ++block)
        for (int first = 0; first < threads; first += 32) {
          if (lane == 0) blockIdx.x = block;
          threadIdx.x = first + lane;
          __syncwarp();
          kernel(given);
          __syncwarp();
        }
    });
  }
  for (auto &thread : warp) thread.join();
  pthread_barrier_destroy(&meeting);
}
