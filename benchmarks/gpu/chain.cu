// Forward dynamics of one free chain of N links, a thread for each: see latency.py, which puts the
// type T, N and the steps before this text.
#define THREADS 128

// Inclusive prefix sums over threads of vectors of SIZE numbers.
template <int SIZE>
__device__ void summed(T (*x)[SIZE], int i) {
  for (int step = 1; step < N; step *= 2) {
    T y[SIZE];
    if (i >= step && i < N) for (int k = 0; k < SIZE; ++k) y[k] = x[i - step][k];
    __syncthreads();
    if (i >= step && i < N) for (int k = 0; k < SIZE; ++k) x[i][k] += y[k];
    __syncthreads();
  }
}

extern "C" __global__ void __launch_bounds__(THREADS) chain(
    const T *rows, const T *gravity, const T *q, const T *v, const T *tau, T *out) {
  extern __shared__ __align__(16) unsigned char memory[];
  T (*nodes)[90] = (T (*)[90])memory;            // leaves, then level by level
  T (*kept)[22] = (T (*)[22])(nodes + 2 * N);
  T (*ends)[12] = (T (*)[12])(kept + 2 * N);     // forces on the ends of a segment
  T (*poses)[12] = (T (*)[12])(ends + 2 * N);
  T (*axes)[6] = (T (*)[6])(poses + N);
  T (*moves)[6] = (T (*)[6])(axes + N);
  T (*biases)[6] = (T (*)[6])(moves + N);
  const int i = threadIdx.x;
  const T *row = rows + 32 * i;
  const T *rate = v + 5 + i, *force = tau + 5 + i;  // of hinge i, from 1 on
  if (i == 0) base_pose(q, poses[0]);
  else if (i < N) pose(row, q + 6 + i, poses[i]);
  __syncthreads();
  for (int step = 1; step < N; step *= 2) {
    T before[12], own[12];
    if (i >= step && i < N)
      for (int k = 0; k < 12; ++k) before[k] = poses[i - step][k], own[k] = poses[i][k];
    __syncthreads();
    if (i >= step && i < N) compose(before, own, poses[i]);
    __syncthreads();
  }
  if (i == 0) {
    base_turned(poses[0], v, moves[0]);
  } else if (i < N) {
    axis(row, poses[i], axes[i]);
    for (int k = 0; k < 6; ++k) moves[i][k] = axes[i][k] * *rate;
  }
  __syncthreads();
  summed<6>(moves, i);
  if (i == 0) for (int k = 0; k < 6; ++k) biases[0][k] = 0;
  else if (i < N) drift(moves[i], axes[i], rate, biases[i]);
  __syncthreads();
  summed<6>(biases, i);
  if (i < N) {
    const T *following = poses[i + 1 < N ? i + 1 : i] + 9;
    leaf(row, poses[i], moves[i], biases[i], following, nodes[i]);
  }
  __syncthreads();
  // A level has `count` segments from `first` on; segment j of it begins with link j << level.
  int first = 0, count = N, level = 0;
  while (count > 1) {
    const int half = (count + 1) / 2;
    if (i < half) {
      T *to = nodes[first + count + i];
      const T *a = nodes[first + 2 * i];
      if (2 * i + 1 < count) {
        const int hinge = (2 * i + 1) << level;
        T both[112];
        join(a, nodes[first + 2 * i + 1], axes[hinge], tau + 5 + hinge, both);
        for (int k = 0; k < 90; ++k) to[k] = both[k];
        for (int k = 0; k < 22; ++k) kept[first + count + i][k] = both[90 + k];
      } else {
        for (int k = 0; k < 90; ++k) to[k] = a[k];
      }
    }
    __syncthreads();
    first += count; count = half; ++level;
  }
  if (i == 0) {
    T a[6];
    base_turned(poses[0], tau, ends[first]);
    for (int k = 0; k < 6; ++k) ends[first][6 + k] = 0;
    root(nodes[first], ends[first], a);
    base_result(poses[0], a, gravity, out);
  }
  __syncthreads();
  while (level > 0) {
    int below = N;
    for (int k = 1; k < level; ++k) below = (below + 1) / 2;
    const int half = count, start = first - below;
    --level;
    if (i < half) {
      const T *outer = ends[first + i];
      T *a = ends[start + 2 * i], *b = ends[start + 2 * i + 1];
      for (int k = 0; k < 6; ++k) a[k] = outer[k];
      if (2 * i + 1 < below) {
        const int hinge = (2 * i + 1) << level;
        T found[7];
        part(nodes[start + 2 * i], nodes[start + 2 * i + 1], axes[hinge], tau + 5 + hinge,
             kept[first + i], outer, outer + 6, found);
        for (int k = 0; k < 6; ++k) a[6 + k] = -found[k], b[k] = found[k], b[6 + k] = outer[6 + k];
        out[5 + hinge] = found[6];
      } else {
        for (int k = 0; k < 6; ++k) a[6 + k] = outer[6 + k];
      }
    }
    __syncthreads();
    first = start; count = below;
  }
}
