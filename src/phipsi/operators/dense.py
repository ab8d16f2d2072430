"""Any expression as a dense matrix: slow, and the oracle of everything fast.

Nothing is a recursion over bodies here. φ is the inverse of I − E_φ; equations that papers solve
body by body (P, S⁺) are iterated as wholes, which ends after as many steps as the forest is deep;
rates are differences along the motion; all else is what `DEFINITIONS` says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import reduce
from typing import Any

import numpy as np

from phipsi.operators import symbols as o
from phipsi.operators.expressions import (
    Adjoint,
    Expression,
    Identity,
    Inverse,
    Leaf,
    LogDet,
    Product,
    Sum,
)
from phipsi.operators.spaces import SCALARS
from phipsi.operators.systems import System, skew

STEP = 1e-2
WEIGHTS = (4 / 5, -1 / 5, 4 / 105, -1 / 280)
"""Of a central difference: f' = Σ wₖ (f(k h) − f(−k h)) / h, of order h⁸."""


def matrix(expression: Expression, system: System, /, **values: Any) -> np.ndarray:
    """The matrix of an expression on a system; a vector is flat, a number has no axes.

    Vectors that the system does not know are given by name (`T=tau`; those of bodies flat or
    (nb, 6)), as may be any symbol (`G=gain`). `ValueError` says what else the system lacks.
    """
    dense = _value(system.giving(**values) if values else system, expression)
    spaces = zip(dense.shape, (expression.codomain, expression.domain), strict=True)
    return dense.reshape([size for size, space in spaces if space != SCALARS]).copy()


def _value(s: System, x: Expression) -> np.ndarray:
    """The matrix, with an axis of one where there are numbers."""
    match x:
        case Leaf():
            if x not in s.known:
                s.known[x] = _leaf(s, x)
            return s.known[x]
        case Adjoint():
            return _value(s, x.leaf).T
        case Inverse():
            inner = _value(s, x.inner)
            with _explained(f"{x.inner} has no inverse on this system"):
                return np.linalg.inv(inner)
        case LogDet():
            sign, size = np.linalg.slogdet(_value(s, x.inner))
            if sign <= 0:
                raise ValueError(f"{x}: the determinant is not positive")
            return np.array([[size]])
        case Product():
            return reduce(lambda right, left: left @ right, _all(s, *reversed(x.factors)))
        case Sum():
            return np.sum([float(c) * _value(s, term) for c, term in x.terms], axis=0)
        case Identity():
            return np.eye(s.size(x.domain))
    return np.zeros((s.size(x.codomain), s.size(x.domain)))


def _leaf(s: System, x: Leaf) -> np.ndarray:
    name = x.symbol.name
    if name in s.given and not x.frames:
        return s.given[name]
    if name in PRIMITIVES:
        if len(x.frames) > 1 and name != "B":
            raise ValueError(f"{x}: {name} takes one name")
        with _explained(f"{x} cannot be computed on this system"):
            return PRIMITIVES[name](s, *x.frames)
    if name in RATES:
        return _rate(s, RATES[name])
    if name in o.DEFINITIONS:
        return _value(s, x.definition)
    raise _unknown(x)


def _all(s: System, *xs: Expression) -> list[np.ndarray]:
    return [_value(s, x) for x in xs]


def _unknown(x: Leaf) -> ValueError:
    name = x.symbol.name
    return ValueError(f"{x} ({x.meaning}) is not known of this system: give it, {name}=…")


@contextmanager
def _explained(what: str) -> Iterator[None]:
    try:
        yield
    except np.linalg.LinAlgError as error:
        raise ValueError(f"{what}: {str(error).lower()}") from None


# ---- blocks ----------------------------------------------------------------------------------


def _blocks(s: System, rows: Any, columns: Any, blocks: np.ndarray) -> np.ndarray:
    n = len(s.parents)
    out = np.zeros((n, 6, n, 6))
    out[rows, :, columns, :] = blocks
    return out.reshape(6 * n, 6 * n)


def _diagonal(s: System, blocks: np.ndarray) -> np.ndarray:
    every = np.arange(len(s.parents))
    return _blocks(s, every, every, blocks)


def _on_diagonal(s: System, X: np.ndarray) -> np.ndarray:
    """The diagonal blocks of X."""
    return X * np.kron(np.eye(len(s.parents)), np.ones((6, 6)))


def _ad(X: np.ndarray) -> np.ndarray:
    """ad(X) = [[a~, 0], [b~, a~]] of X = [a; b], for each row."""
    out = np.zeros((len(X), 6, 6))
    out[:, :3, :3] = out[:, 3:, 3:] = skew(X[:, :3])
    out[:, 3:, :3] = skew(X[:, 3:])
    return out


def _crf(X: np.ndarray) -> np.ndarray:
    """crf(X) = −ad(X)*."""
    return -_ad(X).swapaxes(1, 2)


def _hinged(s: System) -> tuple[np.ndarray, np.ndarray]:
    """The bodies that hang on others, and those."""
    i = np.flatnonzero(np.array(s.parents, int) >= 0)
    return i, np.array(s.parents, int)[i]


# ---- the system's own --------------------------------------------------------------------------


def _E_phi(s: System) -> np.ndarray:
    i, p = _hinged(s)
    return _blocks(s, p, i, s.phi[i])


def _E_phi_s(s: System) -> np.ndarray:
    i, p = _hinged(s)
    return _blocks(s, i, p, np.linalg.inv(s.phi[i]))


def _H(s: System) -> np.ndarray:
    out = np.zeros((len(s.H), len(s.parents), 6))
    out[np.arange(len(s.H)), s.moves] = s.H
    return out.reshape(len(s.H), 6 * len(s.parents))


def _B(s: System, *names: str) -> np.ndarray:
    out = np.zeros((len(s.parents), 6, len(names), 6))
    for k, name in enumerate(names):
        if name not in s.frames:
            known = ", ".join(map(repr, s.frames))
            raise ValueError(f"there is no frame {name!r}; there are {known or 'none'}")
        body, block = s.frames[name]
        if body >= 0:
            out[body, :, k] = block
    return out.reshape(6 * len(s.parents), 6 * len(names))


# ---- Riccati equations -------------------------------------------------------------------------


def _riccati(s: System, hinge_map: Expression, armature: Expression) -> np.ndarray:
    """P = M + E_φ (P − P H* D⁻¹ H P) E_φ*, from all hinges locked, where P is the composite inertia
    and no smaller than it will be, so that D has an inverse; each step frees one more level."""
    E, M, phi, H, A = _all(s, o.E_phi, o.M, o.phi, hinge_map, armature)
    P = _on_diagonal(s, phi @ M @ phi.T)
    for _ in s.parents:
        HP = H @ P
        P = M + E @ (P - HP.T @ np.linalg.solve(HP @ H.T + A, HP)) @ E.T
        P = (P + P.T) / 2
    return P


def _S_plus(s: System) -> np.ndarray:
    """S⁺_i = φ_i⁻¹(M_p + S_p + Σ φ_c P⁺_c φ_c*)φ_i⁻*, over siblings c ≠ i; 0 at roots ([BI] Alg
    3.1). From all hinges locked, as P, where it is no more than the whole system."""
    s.check_free(s.roots)
    E, E_s, M, phi, P_plus = _all(s, o.E_phi, o.E_phi_s, o.M, o.phi, o.P_plus)
    siblings = E_s @ E - _on_diagonal(s, E_s @ E)
    root = np.repeat(np.isin(np.arange(len(s.parents)), s.roots), 6)
    reach = np.linalg.inv(np.eye(len(E)) - E_s)
    whole = _on_diagonal(s, phi @ M @ phi.T) * root
    S_plus = _on_diagonal(s, reach @ whole @ reach.T)
    for _ in s.parents:
        S = _S_of(s, S_plus)
        S_plus = _on_diagonal(s, E_s @ (M + S) @ E_s.T + siblings @ P_plus @ siblings.T)
    return S_plus


def _S_of(s: System, S_plus: np.ndarray) -> np.ndarray:
    H = _value(s, o.H)
    S = S_plus + _G_s_of(s, S_plus) @ H @ S_plus
    return (S + S.T) / 2


def _C_s_of(s: System, S_plus: np.ndarray) -> np.ndarray:
    H, A = _all(s, o.H, o.A)
    inner = np.flatnonzero(~np.isin(s.moves, s.roots))
    own, C = np.ix_(inner, inner), np.zeros_like(A)
    C[own] = np.linalg.inv((H @ S_plus @ H.T + A)[own])
    return C


def _G_s_of(s: System, S_plus: np.ndarray) -> np.ndarray:
    H = _value(s, o.H)
    root = H * np.isin(s.moves, s.roots)[:, None]
    return -S_plus @ H.T @ _C_s_of(s, S_plus) - np.linalg.pinv(root)


def _rebase(s: System, body: str) -> np.ndarray:
    """β' = (V_k, β of hinges): the rows of the free root in I become those of φ*H* at body k."""
    there, k, out = s.rerooted(body), s.bodies.index(body), np.eye(len(s.H))
    out[there.moves == k] = _value(s, o.phi.T @ o.H.T)[6 * k : 6 * k + 6]
    return out


# ---- rates -------------------------------------------------------------------------------------


def _rate(s: System, x: Expression, along: np.ndarray | None = None) -> np.ndarray:
    """dx/dt in the axes of the bodies, along β or other joint rates, by differences."""
    if along is None:
        along = _value(s, o.beta)[:, 0]
    if s.displaced is None:
        raise ValueError(f"the rate of {x} is not known: this system does not move")
    h = STEP / max(1.0, float(np.linalg.norm(along)))
    out = np.zeros_like(_value(s, x))
    for k, w in enumerate(WEIGHTS, 1):
        ahead, behind = (s.displaced(sign * k * h * along) for sign in (1, -1))
        out += w / h * (_value(ahead, x) - _value(behind, x))
    return out


def _H_cross(s: System, hinge: str) -> np.ndarray:
    i = s.freedom(hinge)
    return _blocks(s, s.moves[i], s.moves[i], _crf(s.H[i : i + 1])[0])


def _crossed(s: System, motions: Expression, cross: Callable[[np.ndarray], np.ndarray]) -> Any:
    return _diagonal(s, cross(_value(s, motions).reshape(-1, 6)))


# ---- vectors -----------------------------------------------------------------------------------


def _a(s: System) -> np.ndarray:
    """ad(V)H*β + Ḣ*β."""
    beta = _value(s, o.beta)
    if s.hinge_rate is None:
        raise _unknown(o.a)
    return _value(s, o.V_cross @ o.H.T @ o.beta) + s.hinge_rate(beta[:, 0]).reshape(-1, 1)


def _b(s: System) -> np.ndarray:
    """crf(V)MV less external forces and weight."""
    if s.load is None:
        raise _unknown(o.b)
    V_cross, momenta = _all(s, o.V_cross, o.M @ o.V)
    return -V_cross.T @ momenta - s.load.reshape(-1, 1)


def _gamma(s: System) -> np.ndarray:
    """β* ∂𝓜 β by each freedom."""
    beta = _value(s, o.beta)
    return np.array([(beta.T @ _rate(s, o.mass, e) @ beta)[0] for e in np.eye(len(beta))])


PRIMITIVES: dict[str, Callable[..., np.ndarray]] = {
    "E_phi": _E_phi, "E_phi_s": _E_phi_s, "H": _H, "B": _B,
    "M": lambda s: _diagonal(s, s.M),
    "A": lambda s: s.A,
    "H_a": lambda s: _value(s, o.H)[~s.released],
    "H_p": lambda s: _value(s, o.H)[s.released],
    "A_a": lambda s: s.A[np.ix_(~s.released, ~s.released)],
    "A_p": lambda s: s.A[np.ix_(s.released, s.released)],
    "P": lambda s: _riccati(s, o.H, o.A),
    "P_p": lambda s: _riccati(s, o.H_p, o.A_p),
    "D_half": lambda s: np.linalg.cholesky(_value(s, o.D)),
    "Upsilon": lambda s: _on_diagonal(s, _value(s, o.phi.T @ o.H.T @ o.mass.inv @ o.H @ o.phi)),
    "Upsilon_plus": lambda s: _on_diagonal(s, _value(s, o.E_phi.T @ o.Upsilon @ o.E_phi)),
    "S_plus": _S_plus,
    "S": lambda s: _S_of(s, _value(s, o.S_plus)),
    "G_s": lambda s: _G_s_of(s, _value(s, o.S_plus)),
    "C_s": lambda s: _C_s_of(s, _value(s, o.S_plus)),
    "rebase": _rebase,
    "mass_at": lambda s, body: _value(s.rerooted(body), o.mass),
    "Omega_at": lambda s, body: _value(s.rerooted(body), o.Omega),
    "P_at": lambda s, body: _value(s.rerooted(body), o.P),
    "Delta_cross": lambda s: _crossed(s, o.H.T @ o.beta, _crf),
    "V_cross": lambda s: _crossed(s, o.V, _ad),
    "spin": lambda s: _crossed(s, o.V, lambda V: _ad(V * (1, 1, 1, 0, 0, 0))),
    "mass_by": lambda s, hinge: _rate(s, o.mass, np.eye(len(s.H))[s.freedom(hinge)]),
    "H_cross": _H_cross,
    "a": _a, "b": _b, "gamma": _gamma,
}  # fmt: skip
"""What does not come from a definition, by symbol."""

RATES: dict[str, Expression] = {dot.symbol.name: x for x, dot in o.DOTTED.items()}
"""What is the rate of another, by symbol."""
