/* Joint accelerations from joint forces: β̇ = 𝓜⁻¹(T − C) ([SOA] Alg FD, [BI] Alg 2.3). Robot:
 *     double_pendulum. 39 operations. Written by phipsi.
 *
 * in  q: 2 [rad, m; quaternions (w, x, y, z)]
 * in  v: 2 [rad/s, m/s]
 * in  tau: 2 [N m, N]
 * out out: 2
 *
 * Hinges, and where they are in q and v:
 *   joint1 (revolute): q[0], v[0]
 *   joint2 (revolute): q[1], v[1]
 *
 * Arrays may not overlap. Any number of threads may call it at once.
 */

#include <math.h>

#ifdef __cplusplus
#define restrict __restrict
#endif

#ifdef FP_FAST_FMA
#define PHIPSI_FMA(a, b, c) fma(a, b, c)
#else
#define PHIPSI_FMA(a, b, c) ((a) * (b) + (c)) /* this machine has no quick fma */
#endif

void forward_dynamics(
    const double *restrict q,
    const double *restrict v,
    const double *restrict tau,
    double *restrict out);

void forward_dynamics(
    const double *restrict q,
    const double *restrict v,
    const double *restrict tau,
    double *restrict out) {
  const double x0 = cos(q[0]);
  const double x1 = sin(q[0]);
  const double x2 = cos(q[1]);
  const double x3 = sin(q[1]);
  const double x4 = 9.81 * x1;
  const double x5 = v[0] * v[0];
  const double x6 = (-0.3) * x5;
  const double x7 = PHIPSI_FMA((-9.81), x0, x6);
  const double x8 = x2 * x4;
  const double x9 = PHIPSI_FMA(-x3, x7, x8);
  const double x10 = v[0] + v[1];
  const double x11 = x10 * x10;
  const double x12 = (-0.15) * x11;
  const double x13 = PHIPSI_FMA(-0.15, x9, tau[1]);
  const double x14 = 4.96277915633 * x13;
  const double x15 = 0.744416873449 * x3;
  const double x16 = PHIPSI_FMA(x3, x15, (-0.744416873449));
  const double x17 = PHIPSI_FMA(0.09, x16, 0.120225);
  const double x18 = 1 / x17;
  const double x19 = x2 * x14;
  const double x20 = PHIPSI_FMA(x3, x12, x19);
  const double x21 = PHIPSI_FMA(0.3, x20, tau[1]);
  const double x22 = PHIPSI_FMA(4.4145, x1, x21);
  const double x23 = tau[0] - x22;
  const double x24 = x18 * x23;
  out[0] = x24;
  const double x25 = 0.3 * x24;
  const double x26 = x2 * x25;
  const double x27 = PHIPSI_FMA(4.96277915633, x26, x24);
  const double x28 = PHIPSI_FMA(33.0851943755, x13, -x27);
  out[1] = x28;
}
