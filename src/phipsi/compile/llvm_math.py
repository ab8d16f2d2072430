"""Sine and cosine, exponential, logarithm, tanh and atan2 of whole vectors, as LLVM IR text.

Each function is a formula in Python whose operators append instructions. Only huge angles need a
call of the C library; no fast-math flag is set, and no lane depends on another, so that the bits of
a result do not depend on the number of lanes. The errors given are the largest found on millions of
points over the whole range, in units in the last place (ulp).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from math import inf, log, nan, pi, sqrt

import numpy as np

from phipsi.compile.coefficients import HALF_PI, LN2, POLYNOMIALS, REDUCTIONS, parts_of


def _operator(integers: str, floats: str = "", kind: str = "") -> Callable[..., Value]:
    """The method of `Value` that appends one instruction, by the kind of its operands; `kind` is
    that of the result (default: the same)."""

    def method(self: Value, other: Value | float) -> Value:
        instruction = integers if self.kind.startswith("i") else floats
        right = self.code.value(other, self.kind).name
        return self.code.append(f"{instruction} {self.typed}, {right}", kind or self.kind)

    return method


@dataclass(frozen=True)
class Value:
    """A vector in the text under construction; its operators append instructions."""

    code: FunctionBody
    name: str
    kind: str  # of one lane: double, float, i64, i32 or i1

    @property
    def typed(self) -> str:
        """Type and name, as LLVM writes an operand."""
        return f"{self.code.vector(self.kind)} {self.name}"

    __add__ = _operator("add", "fadd")
    __sub__ = _operator("sub", "fsub")
    __mul__ = _operator("mul", "fmul")
    __truediv__ = _operator("", "fdiv")
    __and__ = _operator("and")
    __or__ = _operator("or")
    __xor__ = _operator("xor")
    __lshift__ = _operator("shl")
    __rshift__ = _operator("lshr")
    __lt__ = _operator("icmp slt", "fcmp olt", "i1")
    __gt__ = _operator("icmp sgt", "fcmp ogt", "i1")
    equals = _operator("icmp eq", "fcmp oeq", "i1")

    def __abs__(self) -> Value:
        return self.code.call("fabs", self)

    def choose(self, yes: Operand, no: Operand) -> Value:
        """In each lane `yes` where this condition holds, else `no`."""
        yes, no = self.code.value(yes), self.code.value(no)
        return self.code.append(f"select {self.typed}, {yes.typed}, {no.typed}", no.kind)

    def cast(self, kind: str, operation: str = "bitcast") -> Value:
        """The lanes as another kind: the same bits, or converted by another LLVM operation."""
        return self.code.append(f"{operation} {self.typed} to {self.code.vector(kind)}", kind)

    @property
    def bits(self) -> Value:
        """The bits of floats as integers."""
        return self.cast(self.code.integer)

    @property
    def floats(self) -> Value:
        """The floats with these bits."""
        return self.cast(self.code.real)


Operand = Value | float


@dataclass
class FunctionBody:
    """The body of one function under construction, for a number of lanes and a number type."""

    lanes: int
    dtype: str
    has_fma: bool
    lines: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        self.real, self.integer, self.mantissa, self.bias, self.ln2_bits = {
            "float64": ("double", "i64", 52, 1023, (42, 53)),  # k·(first part of ln 2) is exact
            "float32": ("float", "i32", 23, 127, (16, 24)),
        }[self.dtype]
        self.round = np.dtype(self.dtype).type
        self.sign = 2 * (self.bias + 1) << self.mantissa
        self.tiny = 2.0 ** (1 - self.bias)
        # Adding `magic` rounds a number to an integer, which is then in the low bits of the sum.
        self.magic = 1.5 * 2**self.mantissa

    def vector(self, kind: str) -> str:
        """The type of all lanes of a kind; a pair is two vectors of floats."""
        if kind == "pair":
            return f"{{{self.vector(self.real)}, {self.vector(self.real)}}}"
        return kind if self.lanes == 1 else f"<{self.lanes} x {kind}>"

    def append(self, text: str, kind: str) -> Value:
        """Append one instruction."""
        name = f"%v{len(self.lines)}"
        self.lines.append(f"  {name} = {text}")
        return Value(self, name, kind)

    def value(self, operand: Operand, kind: str = "") -> Value:
        """A number as the same constant in every lane, exact to the bit; a value as it is."""
        if isinstance(operand, Value):
            return operand
        kind = kind or self.real
        if kind.startswith("i"):
            constant = str(int(operand))
        else:  # LLVM writes a float, too, by the bits of the double of the same value
            constant = f"0x{np.float64(self.round(operand)).view(np.uint64):016X}"
        lanes = ", ".join([f"{kind} {constant}"] * self.lanes)
        return Value(self, constant if self.lanes == 1 else f"<{lanes}>", kind)

    def call(self, intrinsic: str, *arguments: Value) -> Value:
        """An LLVM intrinsic on all lanes."""
        kind = arguments[0].kind
        suffix = {"double": "f64", "float": "f32"}[kind]
        suffix = suffix if self.lanes == 1 else f"v{self.lanes}{suffix}"
        texts = ", ".join(argument.typed for argument in arguments)
        return self.append(f"call {self.vector(kind)} @llvm.{intrinsic}.{suffix}({texts})", kind)

    def fma(self, a: Value, b: Operand, c: Operand) -> Value:
        """a·b + c, rounded once if the machine has an FMA."""
        b, c = self.value(b), self.value(c)
        return self.call("fma", a, b, c) if self.has_fma else a * b + c

    def reduce(self, x: Value, k: Value, parts: Iterable[float]) -> Value:
        """The remainder x - k·c for a constant c given in parts."""
        for part in parts:
            x = self.fma(k, -part, x)
        return x

    def polynomial(self, name: str, x: Value) -> Value:
        """A polynomial of coefficients.py, by Horner's rule."""
        *lower, last = POLYNOMIALS[name, self.dtype]
        result = self.value(last)
        for coefficient in reversed(lower):
            result = self.fma(x, result, coefficient)
        return result

    def pair(self, a: Value, b: Value) -> Value:
        """Two vectors as one result."""
        half = self.append(f"insertvalue {self.vector('pair')} undef, {a.typed}, 0", "pair")
        return self.append(f"insertvalue {half.typed}, {b.typed}, 1", "pair")


def _sincos(code: FunctionBody, x: Value) -> Value:
    """Sine and cosine of k·π/2 + r by polynomials in r, |r| <= π/4 (Cody and Waite's reduction).

    The error is 1.5 ulp, found where r > 1/2 but sin r < 1/2, because r is rounded once; for
    |x| <= π/4 it is 0.9 ulp.
    """
    bound, bits = REDUCTIONS[code.dtype, code.has_fma]
    shifted = code.fma(x, 2 / pi, code.magic)
    *parts, last = parts_of(HALF_PI, *bits)
    count = shifted - code.magic
    r = code.reduce(x, count, parts)
    z = r * r  # the last part matters to r alone, and only near a multiple of π/2
    r = code.fma(count, -last, r)
    sin = code.fma(r, code.fma(z, code.polynomial("sin", z), code.tiny), r)  # tiny keeps -0
    cos = code.fma(z, code.polynomial("cos", z), 1)
    k = shifted.bits
    even = (k & 1).equals(0)
    top = k << (code.sign.bit_length() - 2)
    sin, cos = even.choose(sin, cos), even.choose(cos, sin)
    sin = (sin.bits ^ (top & code.sign)).floats
    cos = (cos.bits ^ (top + (code.sign >> 1) & code.sign)).floats
    fast = code.pair(sin, cos)
    any_huge = huge = abs(x) > bound
    if code.lanes > 1:
        any_huge = code.append(f"call i1 @llvm.vector.reduce.or.v{code.lanes}i1({huge.typed})", "")
    code.lines += [f"  br i1 {any_huge.name}, label %huge, label %done", "huge:"]
    slow = f"@phipsi.sincos.huge({x.typed}, {sin.typed}, {cos.typed})"
    slow = code.append(f"call {code.vector('pair')} {slow}", "pair")
    code.lines += ["  br label %done", "done:"]
    choice = f"[{fast.name}, %entry], [{slow.name}, %huge]"
    return code.append(f"phi {code.vector('pair')} {choice}", "pair")


def _sincos_huge(code: FunctionBody, x: Value, sin: Value, cos: Value) -> Value:
    """The values of the C library in the lanes with huge angles, the given ones in the others."""
    huge = abs(x) > REDUCTIONS[code.dtype, code.has_fma][0]
    wide = x.cast("double", "fpext") if code.real == "float" else x
    slow = [code.call("sin", wide), code.call("cos", wide)]
    if code.real == "float":
        slow = [value.cast("float", "fptrunc") for value in slow]
    return code.pair(huge.choose(slow[0], sin), huge.choose(slow[1], cos))


def _expm1(code: FunctionBody, x: Value) -> tuple[Value, Value]:
    """exp(r) - 1 and the integer k in low bits, x = k·ln 2 + r with |r| <= ln(2)/2."""
    shifted = code.fma(x, 1 / log(2), code.magic)
    r = code.reduce(x, shifted - code.magic, parts_of(LN2, *code.ln2_bits))
    return code.fma(r * r, code.polynomial("exp", r), r), shifted.bits


def _exp(code: FunctionBody, x: Value) -> Value:
    """exp(r)·2^k, 2^k in two factors: overflow and subnormals are rounded once. 1.1 ulp."""
    low, high = (-746, 710) if code.dtype == "float64" else (-104, 89)
    x = (x > high).choose(high, x)
    x = (x < low).choose(low, x)
    p, k = _expm1(code, x)
    exponent = k + 2 * code.bias & 4 * code.bias + 3
    half = exponent >> 1
    scales = [(half << code.mantissa).floats, (exponent - half << code.mantissa).floats]
    return (p + 1) * scales[0] * scales[1]


def _tanh(code: FunctionBody, x: Value) -> Value:
    """1 - 2/(exp(2|x|) + 1), or a polynomial where |x| < 3/4, with the sign of x: 1.1 ulp."""
    a = abs(x)
    a = (a > 20).choose(20, a)
    p, k = _expm1(code, a + a)
    e = (p + 1) * (k + code.bias << code.mantissa).floats
    large = code.value(1) - code.value(2) / (e + 1)
    z = a * a
    small = code.fma(a, z * code.polynomial("tanh", z), a)
    return ((a < 0.75).choose(small, large).bits | (x.bits & code.sign)).floats


def _log(code: FunctionBody, x: Value) -> Value:
    """k·ln 2 + log(1 + f), √½ <= 1 + f < √2, by s = f/(2 + f) as in fdlibm's e_log.c: 0.9 ulp."""
    subnormal = x < code.tiny
    extra = code.mantissa + 2
    one, shift = code.bias << code.mantissa, 1 << code.mantissa
    root = int(code.round(sqrt(0.5)).view(f"int{code.integer[1:]}"))
    u = subnormal.choose(x * 2.0**extra, x).bits + (one - root)
    k = (u >> code.mantissa | one + code.mantissa * shift).floats - (shift + code.bias)
    k = subnormal.choose(k - extra, k)
    f = ((u & shift - 1) + root).floats - 1
    s = f / (f + 2)
    z = s * s
    R = z * code.polynomial("log", z)
    h = f * f * 0.5
    high, low = parts_of(LN2, *code.ln2_bits)
    result = k * high - ((h - code.fma(s, h + R, k * low)) - f)
    result = (x < inf).choose(result, x)
    return x.equals(0).choose(-inf, (x < 0).choose(nan, result))


def _atan2(code: FunctionBody, y: Value, x: Value) -> Value:
    """The arctangent of the smaller over the larger, by a polynomial, then moved to its octant:
    1.5 ulp."""
    a, b = abs(y), abs(x)
    steep, left = a > b, x.bits < 0
    smaller, larger = steep.choose(b, a), steep.choose(a, b)
    t = smaller.equals(larger).choose(1, smaller / larger)  # ∞/∞
    t = larger.equals(0).choose(smaller, t)  # 0/0
    z = t * t
    t = (steep ^ left).choose(code.value(0) - t, t)
    high, low = [
        steep.choose(part, left.choose(2 * part, 0))
        for part in parts_of(HALF_PI, code.mantissa + 1, code.mantissa + 1)
    ]
    angle = high + (t + code.fma(t, z * code.polynomial("atan", z), low))
    return (angle.bits | (y.bits & code.sign)).floats


_FUNCTIONS: dict[str, tuple[Callable[..., Value], str, str]] = {
    "sincos.huge": (_sincos_huge, "xsc", "noinline cold"),
    "sincos": (_sincos, "x", "alwaysinline"),
    "exp": (_exp, "x", "alwaysinline"),
    "log": (_log, "x", "alwaysinline"),
    "tanh": (_tanh, "x", "alwaysinline"),
    "atan2": (_atan2, "yx", "alwaysinline"),
}


def definitions(names: Iterable[str], lanes: int, dtype: str, fma: bool = True) -> str:
    """LLVM IR of `@phipsi.<name>` for vectors of so many lanes (one lane: plain scalars).

    Names are sincos, exp, log, tanh and atan2(y, x); sincos returns the pair {sin, cos}. The text
    declares nothing: LLVM knows its own intrinsics, and reaches the C library through them.
    """
    wanted = set(names)
    if "sincos" in wanted:
        wanted.add("sincos.huge")
    texts: list[str] = []
    for name in [name for name in _FUNCTIONS if name in wanted]:
        formula, letters, attributes = _FUNCTIONS[name]
        code = FunctionBody(lanes, dtype, fma)
        arguments = [Value(code, f"%{letter}", code.real) for letter in letters]
        result = formula(code, *arguments)
        head = f"define internal {code.vector(result.kind)} @phipsi.{name}"
        head += f"({', '.join(argument.typed for argument in arguments)}) nounwind {attributes}"
        texts.append("\n".join([f"{head} {{", "entry:", *code.lines, f"  ret {result.typed}", "}"]))
    return "\n\n".join(texts) + "\n"
