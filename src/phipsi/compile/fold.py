"""Algebraic rules used while tracing: signs, zeros, ones, constants gathered.

They keep structural zeros free: 0·x is 0 and x − x is 0, whatever x is; (x − y) + y is x.
"""

from __future__ import annotations

from phipsi.compile.node import Node


def _zero(a: Node) -> bool:
    return a.op == "const" and a.value == 0.0


def add(a: Node, b: Node) -> Node:
    """a + b."""
    if a.op == "const":
        a, b = b, a
    if b.op == "const":
        if a.op == "const":
            return a.tracer.lift(a.value + b.value)
        if b.value == 0.0:
            return a
    if b.op == "neg":
        return sub(a, b.args[0])
    if a.op == "neg":
        return sub(b, a.args[0])
    if a.op == "sub" and a.args[1] is b:
        return a.args[0]
    if b.op == "sub" and b.args[1] is a:
        return b.args[0]
    return a.tracer.make("add", (a, b) if a.index <= b.index else (b, a))


def sub(a: Node, b: Node) -> Node:
    """a − b."""
    if b.op == "const":
        return add(a, a.tracer.lift(-b.value))
    if _zero(a):
        return neg(b)
    if b.op == "neg":
        return add(a, b.args[0])
    if a.op == "neg":
        return neg(add(a.args[0], b))
    if a is b:
        return a.tracer.lift(0.0)
    if b.op == "sub" and b.args[0] is a:
        return b.args[1]
    return a.tracer.make("sub", (a, b))


def rsub(a: Node, b: Node) -> Node:
    """b − a."""
    return sub(b, a)


def neg(a: Node) -> Node:
    """−a."""
    if a.op == "const":
        return a.tracer.lift(-a.value)
    if a.op == "neg":
        return a.args[0]
    if a.op == "sub":
        return a.tracer.make("sub", (a.args[1], a.args[0]))
    if a.op == "mul" and a.args[0].op == "const":
        return mul(a.tracer.lift(-a.args[0].value), a.args[1])
    return a.tracer.make("neg", (a,))


def mul(a: Node, b: Node) -> Node:
    """a b."""
    if b.op == "const":
        a, b = b, a
    if a.op == "const":
        c = a.value
        if b.op == "const":
            return a.tracer.lift(c * b.value)
        if c == 0.0 or c == 1.0:
            return b if c else a
        if c == -1.0:
            return neg(b)
        if b.op == "neg":
            return mul(a.tracer.lift(-c), b.args[0])
        if b.op == "mul" and b.args[0].op == "const":
            return mul(a.tracer.lift(c * b.args[0].value), b.args[1])
        return a.tracer.make("mul", (a, b))
    if a.op == "neg":
        return neg(mul(a.args[0], b))
    if b.op == "neg":
        return neg(mul(a, b.args[0]))
    return a.tracer.make("mul", (a, b) if a.index <= b.index else (b, a))


def div(a: Node, b: Node) -> Node:
    """a / b."""
    if b.op == "const" and b.value != 0.0 and 1e-300 < abs(1.0 / b.value) < 1e300:
        return mul(a, a.tracer.lift(1.0 / b.value))
    if _zero(a) and b.op != "const":
        return a
    if a.op == "neg":
        return neg(div(a.args[0], b))
    if b.op == "neg":
        return neg(div(a, b.args[0]))
    return a.tracer.apply("div", a, b)


def rdiv(a: Node, b: Node) -> Node:
    """b / a."""
    return div(b, a)


def truth(a: Node) -> Node:
    """1 where a is not zero, else 0."""
    return a if _is_truth(a) else 1.0 - a.tracer.apply("equal", a, 0.0)


def both(a: Node, b: Node) -> Node:
    """a and b, as truth values."""
    return a.tracer.apply("min", truth(a), truth(b))


def either(a: Node, b: Node) -> Node:
    """a or b, as truth values."""
    return a.tracer.apply("max", truth(a), truth(b))


def negation(a: Node) -> Node:
    """Not a, as truth values."""
    return 1.0 - truth(a)


def _is_truth(a: Node) -> bool:
    """Whether a is known to be 0 or 1."""
    if a.op in ("min", "max"):
        return all(map(_is_truth, a.args))
    if a.op == "sub":
        return a.args[0].op == "const" and a.args[0].value == 1.0 and _is_truth(a.args[1])
    return a.op in ("less", "less_equal", "equal") or (a.op == "const" and a.value in (0.0, 1.0))


def power(a: Node, p: Node) -> Node:
    """a to the power p: products for whole numbers and a root for halves, else exp(p log a)."""
    n = p.value
    if p.op != "const" or not float(2.0 * n).is_integer():
        return (p * a.log()).exp()
    if not float(n).is_integer():
        whole = power(a, a.tracer.lift(abs(n) - 0.5)) * a.sqrt()
        return whole if n >= 0 else 1.0 / whole
    result, square, k = a.tracer.lift(1.0), a, int(abs(n))
    while k:
        result, square, k = (result * square if k & 1 else result), square * square, k >> 1
    return result if n >= 0 else 1.0 / result


RULES = {"add": add, "sub": sub, "mul": mul, "neg": neg}
"""The rules of operations that cost next to nothing."""
