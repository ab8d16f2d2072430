"""Pseudo-code, read as a person would: line by line, body by body, with dense blocks."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

import numpy as np

from phipsi.operators import H_dot
from phipsi.operators.algebra.spaces import Space
from phipsi.operators.dense import System, matrix
from phipsi.operators.lowering.recursions import DUAL, INWARD
from phipsi.operators.writing.pseudocode import Pass, Pseudocode

TOKEN = re.compile(
    r"[\d.]+(?:/\d+)?|(?:B|H̃)\('.*?'\)[*]?|(?:ad|crf)\(V\)|Σ_[ck]|log det"
    r"|\)(?:⁻¹|⁻\*|\*)?|\(|[^\s()]+"
)


class Reader:
    """A system, and what is known of each body so far."""

    def __init__(self, system: System, code: Pseudocode) -> None:
        self.s, self.code = system, code
        nb = len(system.parents)
        self.children = [[c for c in range(nb) if system.parents[c] == k] for k in range(nb)]
        self.whole: dict[str, Any] = {}
        self.bodies = [self._given(k) for k in range(nb)]

    def _given(self, k: int) -> dict[str, Any]:
        s, own = self.s, self.s.moves == k
        known = {
            "φ": s.phi[k], "M": s.M[k], "I": np.eye(6), "H": s.H[own], "A": s.A[own][:, own],
        }  # fmt: skip
        if s.passive is not None:
            for end, mask in (("_p", own & s.passive), ("_a", own & ~s.passive)):
                known |= {f"H{end}": s.H[mask], f"A{end}": s.A[mask][:, mask]}
        return known

    def _carried(self, token: str, k: int) -> np.ndarray:
        """The block of B at a body."""
        at = [self.s.frames[name] for name in re.findall("'(.*?)'", token)]
        return np.concatenate([block * (body == k) for body, block in at], axis=1)

    def give(self, name: str, vector: np.ndarray, space: Space) -> None:
        """A vector that the pseudo-code starts from."""
        if space.size == "frame":
            self.whole[name] = vector
            return
        for k, known in enumerate(self.bodies):
            known[name] = vector[self._place(k, space.size)]

    def move(self, beta: np.ndarray) -> None:
        """Joint rates, with what they and the loads are to each body."""
        assert self.s.load is not None
        rates = matrix(H_dot, self.s, beta=beta)
        for k, known in enumerate(self.bodies):
            own = known["β"] = beta[self.s.moves == k]
            known["Ḣ"] = rates[self.s.moves == k, 6 * k : 6 * k + 6]
            known["Δ̃"] = _cross(known["H"].T @ own, True)
            known["f_ext"] = self.s.load[k]  # with the weight

    def result(self, name: str, space: Space) -> np.ndarray:
        """What was computed, as one vector."""
        if space.size in ("frame", "one"):
            shape = (self.s.size(space),) if space.size == "frame" else ()
            return np.broadcast_to(self.whole[name], shape)
        out = np.zeros(self.s.size(space))
        for k, known in enumerate(self.bodies):
            out[self._place(k, space.size)] = known[name]
        return out

    def _place(self, k: int, size: str) -> Any:
        """Where the part of a body is in a vector."""
        if size == "body":
            return slice(6 * k, 6 * k + 6)
        own = self.s.moves == k
        return own if size == "joint" else own[self.s.released == (size == "passive")]

    def run(self) -> None:
        """All passes."""
        for one in self.code.passes:
            self._pass(one)

    def _pass(self, one: Pass) -> None:
        order = range(len(self.bodies))
        lines = [line for line in one.lines if not self._of_no_body(line)]
        for k in reversed(order) if one.sweep.direction == INWARD else order:
            for line in lines:
                if line.recursion is DUAL and self.s.parents[k] < 0:  # as its note says
                    zero, P = np.zeros((6, 6)), self.bodies[k]["P"]
                    self.bodies[k] |= {"S⁺": zero, "S": zero, "G_s": -np.eye(6), "Λ": P}
                    continue
                for formula in line.formulas:
                    name, text = str(formula).split(" = ")
                    self.bodies[k][name] = self._sum(_tokens(text), k, one)
        for line in one.lines:
            if self._of_no_body(line):
                ((name, text),) = (str(formula).split(" = ") for formula in line.formulas)
                self.whole[name.removesuffix("_i")] = self._sum(_tokens(text), 0, one)

    def _of_no_body(self, line: Any) -> bool:
        return bool(line.values) and line.values[0].whole

    # ---- one formula ---------------------------------------------------------------------------

    def _sum(self, tokens: list[str], k: int, one: Pass, c: int | None = None) -> Any:
        total, sign, term, depth = 0.0, 1.0, list[str](), 0
        for token in [*tokens, "+"]:
            depth += token.count("(") - token.count(")") if token[0] in "()" else 0
            if depth == 0 and token in ("+", "−"):
                if term:
                    total = total + sign * self._product(term, k, one, c)
                sign, term = 1.0 if token == "+" else -1.0, []
            else:
                term.append(token)
        return total

    def _product(self, tokens: list[str], k: int, one: Pass, c: int | None) -> Any:
        out: Any = None
        while tokens:
            head, rest = tokens[0], tokens[1:]
            if head == "Σ_c":
                inward = one.sweep.direction == INWARD
                near = self.children[k] if inward else self._siblings(k)
                value, rest = sum(self._product(rest, k, one, n) for n in near), []
            elif head == "Σ_k":
                value, rest = (
                    sum(self._product(rest, n, one, c) for n in range(len(self.bodies))),
                    [],
                )
            elif head.startswith("B(") and head[-1] == "*":
                each = (self._carried(head, n).T for n in range(len(self.bodies)))
                parts = [_times(B, self._product(rest, n, one, c)) for n, B in enumerate(each)]
                value, rest = sum(parts), []
            elif head == "log det":
                value, rest = np.linalg.slogdet(self._factor(rest[0], k, one, c))[1], rest[1:]
            elif head == "(":
                end = _closing(tokens)
                value = _raised(self._sum(tokens[1:end], k, one, c), tokens[end][1:])
                rest = tokens[end + 1 :]
            else:
                value = self._factor(head, k, one, c)
            out, tokens = value if out is None else _times(out, value), rest
        return out

    def _siblings(self, k: int) -> list[int]:
        return [n for n in self.children[self.s.parents[k]] if n != k]

    def _factor(self, token: str, k: int, one: Pass, c: int | None) -> Any:
        if token[0].isdigit():
            return float(Fraction(token))
        known, power = self.bodies[k], ""
        for mark in ("⁻¹", "⁻*", "*"):
            if token.endswith(mark):
                token, power = token.removesuffix(mark), mark
                break
        if token.startswith("B("):
            return _raised(self._carried(token, k), power)
        if token.startswith("H̃("):
            i = self.s.freedom(re.findall("'(.*?)'", token)[0])
            return _raised(_cross(self.s.H[i], True) * (self.s.moves[i] == k), power)
        if token in self.whole:
            return _raised(self.whole[token], power)
        if token not in known and token.endswith("_c"):
            assert c is not None
            return _raised(self.bodies[c][token.removesuffix("_c")], power)
        mark = f"_{self.code.parent}"
        if token not in known and token.endswith(mark):
            name, p = token.removesuffix(mark), self.s.parents[k]
            if p < 0:
                assert name in {*map(str, one.zero), "g"}, f"{name} at the world?"
                return 0.0
            return _raised(self.bodies[p][name], power)
        if token == "D½":
            return _raised(np.linalg.cholesky(known["D"]), power)
        if token == "Ḋ½":  # as its meaning says
            L = np.linalg.cholesky(known["D"])
            whole = np.linalg.solve(L, np.linalg.solve(L, known["Ḋ"]).T)
            return _raised(L @ (np.tril(whole, -1) + np.diag(np.diag(whole)) / 2), power)
        if token in ("ad(V)", "crf(V)", "Ṽ", "ω̃"):
            V = np.broadcast_to(known["V"], 6) * ([1.0] * 3 + [token != "ω̃"] * 3)
            return _raised(_cross(V, token[0] == "c"), power)
        return _raised(known[token], power)


def _tokens(text: str) -> list[str]:
    return TOKEN.findall(re.sub(r"(^|\()−(?=\S)", r"\1− ", text))


def _closing(tokens: list[str]) -> int:
    depth = 0
    for i, token in enumerate(tokens):
        depth += (token == "(") - (token[0] == ")")
        if not depth:
            return i
    raise AssertionError(tokens)


def _times(a: Any, b: Any) -> Any:
    if np.ndim(a) and np.ndim(b):
        return a @ b
    return 0.0 if (np.ndim(a) == 0 and a == 0.0) or (np.ndim(b) == 0 and b == 0.0) else a * b


def _raised(x: Any, power: str) -> Any:
    if np.ndim(x) == 0:
        return x
    x = np.linalg.inv(x) if "⁻" in power else x
    return x.T if "*" in power else x


def _cross(X: np.ndarray, force: bool) -> np.ndarray:
    a, b = (np.cross(np.eye(3), x) for x in (X[:3], X[3:]))
    zero = np.zeros((3, 3))
    return np.block([[a, b], [zero, a]]) if force else np.block([[a, zero], [b, a]])
