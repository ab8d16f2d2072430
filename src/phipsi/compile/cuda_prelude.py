"""Functions defined before a CUDA kernel: copies of rows to and from shared memory, sine and
cosine, minimum and maximum.

Sine and cosine have the formulas of llvm_math.py, so that both round alike. CUDA's own functions
reduce huge angles through memory, which costs every kernel registers; here a function that is not
inlined does so (in single precision after Payne and Hanek).
"""

from __future__ import annotations

from collections.abc import Iterator
from math import pi

from phipsi.compile.c_text import Text
from phipsi.compile.coefficients import HALF_PI, POLYNOMIALS, REDUCTIONS, parts_of

_ROWS = """
template <int BYTES>  // into shared memory: they are there after phipsi_arrived
__device__ __forceinline__ void phipsi_fetch(void *to, const void *from) {{
#if __CUDA_ARCH__ >= 800
  const unsigned at = (unsigned)__cvta_generic_to_shared(to);
  if (BYTES == 16) {{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at), "l"(from) : "memory");
  }} else {{
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(at), "l"(from), "n"(BYTES)
                 : "memory");
  }}
#else
  if (BYTES == 16) {{
    *({V} *)to = *(const {V} *)from;
  }} else {{
    *({T} *)to = *(const {T} *)from;
  }}
#endif
}}

__device__ __forceinline__ void phipsi_arrived() {{
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_all;" ::: "memory");
#endif
  __syncwarp();
}}

template <int N, int P>  // N columns of 32 rows into shared memory, P apart; the last row repeated
__device__ __noinline__ void phipsi_load_any(
    {T} *tile, const {T} *from, long long stride, long long first, long long rows, int lane) {{
#pragma unroll 1
  for (int i = lane; i < 32 * N; i += 32) {{
    const long long row = first + i / N < rows ? first + i / N : rows - 1;
    phipsi_fetch<{size}>(tile + i / N * P + i % N, from + row * stride + i % N);
  }}
}}

template <int N, int P>
__device__ __forceinline__ void phipsi_store_part(
    const {T} *tile, {T} *to, long long stride, long long first, long long rows, int lane) {{
#pragma unroll 1
  for (int i = lane; i < 32 * N; i += 32) {{
    if (first + i / N < rows) to[(first + i / N) * stride + i % N] = tile[i / N * P + i % N];
  }}
}}

template <int N, int P>
__device__ __noinline__ void phipsi_store_any(
    const {T} *tile, {T} *to, long long stride, long long first, long long rows, int lane) {{
  phipsi_store_part<N, P>(tile, to, stride, first, rows, lane);
}}

template <int N, int P>  // a whole array, 16 bytes at a time if it is one block
__device__ __forceinline__ void phipsi_load(
    {T} *tile, const {T} *from, long long stride, long long first, long long rows, int lane) {{
  if (P == N && stride == N && first + 32 <= rows && ((size_t)from & 15) == 0) {{
#pragma unroll 1
    for (int i = lane; i < 32 * N / {per}; i += 32)
      phipsi_fetch<16>(({V} *)tile + i, (const {V} *)(from + first * N) + i);
  }} else {{
    phipsi_load_any<N, P>(tile, from, stride, first, rows, lane);
  }}
}}

template <int N, int P>
__device__ __forceinline__ void phipsi_store(
    const {T} *tile, {T} *to, long long stride, long long first, long long rows, int lane) {{
  if (P == N && stride == N && first + 32 <= rows && ((size_t)to & 15) == 0) {{
#pragma unroll 1
    for (int i = lane; i < 32 * N / {per}; i += 32)
      (({V} *)(to + first * N))[i] = ((const {V} *)tile)[i];
  }} else {{
    phipsi_store_any<N, P>(tile, to, stride, first, rows, lane);
  }}
}}"""

_LEAST = """
__device__ __forceinline__ {T} phipsi_{name}({T} a, {T} b) {{  // NaN if either is
  return a {sign} b || a != a ? a : b;
}}"""

_SPECIAL = """
#undef INFINITY  // constants in tables too
#undef NAN
#define INFINITY __builtin_bit_cast(float, 0x7f800000)
#define NAN __builtin_bit_cast(float, 0x7fc00000)"""

_SINCOS = """
__device__ __forceinline__ void phipsi_sincos({T} x, {T} *sine, {T} *cosine) {{
  const {T} shifted = fma{f}(x, {two_over_pi}, {magic});
  const {T} n = shifted - {magic};
  int k = {low}(shifted);
  {T} r = fma{f}(n, {p1}, x);
  r = fma{f}(n, {p2}, r);
  {T} z = r * r;
  r = fma{f}(n, {p3}, r);
{huge}
  {T} s = {sin};
  {T} c = {cos};
  s = fma{f}(r, fma{f}(z, s, {tiny}), r);
  c = fma{f}(z, c, {one});
  const {T} a = k & 1 ? c : s, b = k & 1 ? s : c;
  *sine = phipsi_signed(a, k << 30);
  *cosine = phipsi_signed(b, (k + 1) << 30);
{end}}}"""

_FLOAT = """
__constant__ unsigned phipsi_two_over_pi[8] = {
  0x00000000u, 0x00000000u, 0xa2f9836eu, 0x4e441529u,
  0xfc2757d1u, 0xf534ddc0u, 0xdb629599u, 0x3c439041u};

__device__ __forceinline__ float phipsi_signed(float x, int sign) {
  return __int_as_float(__float_as_int(x) ^ (sign & 0x80000000));
}

__device__ __noinline__ float2 phipsi_huge(float x) {  // x 2/pi mod 4, in units of 2^-62
  const unsigned bits = __float_as_int(x), m = bits << 8 | 0x80000000u;
  const int at = (int)(bits >> 23 & 255) - 96;
  const unsigned *const t = phipsi_two_over_pi + (at >> 5);
  const unsigned up = at & 31;
  const unsigned long long high = __funnelshift_l(t[1], t[0], up);
  const unsigned long long middle = __funnelshift_l(t[2], t[1], up);
  const unsigned long long low = __funnelshift_l(t[3], t[2], up);
  const unsigned long long p = m * (high << 32 | middle) + (m * low >> 32);
  const int q = (int)((p + (1ull << 61)) >> 62);
  const float r = (float)((double)(long long)(p - ((unsigned long long)q << 62)) * UNIT);
  float2 both;
  both.x = at > 158 ? x - x : bits >> 31 ? -r : r;  // infinity has no sine
  both.y = __int_as_float(bits >> 31 ? -q : q);
  return both;
}""".replace("UNIT", repr(pi / 2 * 2.0**-62))

_DOUBLE = """
__device__ __forceinline__ double phipsi_signed(double x, int sign) {
  return __hiloint2double(__double2hiint(x) ^ (sign & 0x80000000), __double2loint(x));
}

__device__ __noinline__ double2 phipsi_huge(double x) {
  double2 both;
  sincos(x, &both.x, &both.y);
  return both;
}"""

_HUGE_FLOAT = """  if (fabsf(x) > {bound}) {{
    const float2 both = phipsi_huge(x);
    r = both.x;
    z = r * r;
    k = __float_as_int(both.y);
  }}"""

_HUGE_DOUBLE = """  if (fabs(x) > {bound}) {{
    const double2 both = phipsi_huge(x);
    *sine = both.x;
    *cosine = both.y;
  }} else {{"""


def definitions(text: Text, body: str) -> Iterator[str]:
    """The definitions of all functions that a kernel uses."""
    vectors = {"float32": ("float4", 4), "float64": ("double2", 2)}
    V, per = vectors[text.dtype]
    if any(word in part for word in ("INFINITY", "NAN") for part in (body, *text.tables)):
        yield _SPECIAL.strip("\n")
    if "phipsi_load" in body or "phipsi_store" in body:
        yield _ROWS.format(T=text.T, V=V, per=per, size=16 // per).strip("\n")
    if "sincos" in text.used:
        yield sincos(text)
    for name, sign in (("min", "<"), ("max", ">")):
        if name in text.used:
            yield _LEAST.format(T=text.T, name=name, sign=sign).strip("\n")


def sincos(text: Text) -> str:
    """The definition of `void phipsi_sincos(T x, T *sine, T *cosine)`: 1.5 ulp for any angle."""
    bound, bits = REDUCTIONS[text.dtype, True]
    p1, p2, p3 = (text.literal(-p) for p in parts_of(HALF_PI, *bits))
    single = text.dtype == "float32"
    huge = _HUGE_FLOAT if single else _HUGE_DOUBLE
    body = _SINCOS.format(
        T=text.T, f=text.f, p1=p1, p2=p2, p3=p3,
        two_over_pi=text.literal(2 / pi), one=text.literal(1.0),
        magic=text.literal(1.5 * 2.0 ** (23 if single else 52)),
        tiny=text.literal(2.0 ** (-126 if single else -1022)),
        low="__float_as_int" if single else "__double2loint",
        huge=huge.format(bound=text.literal(bound)),
        sin=_polynomial(text, "sin"), cos=_polynomial(text, "cos"), end="" if single else "  }\n",
    )  # fmt: skip
    return (_FLOAT if single else _DOUBLE).strip("\n") + "\n" + body


def _polynomial(text: Text, name: str) -> str:
    """The expression of a polynomial in z, by Horner's rule."""
    *lower, last = POLYNOMIALS[name, text.dtype]
    result = text.literal(last)
    for coefficient in reversed(lower):
        result = f"fma{text.f}(z, {result}, {text.literal(coefficient)})"
    return result
