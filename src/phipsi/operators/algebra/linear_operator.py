"""Linear operators with numbers: what a robot makes of an expression at a configuration."""

from __future__ import annotations

from abc import ABC, abstractmethod
from math import prod
from typing import Any

import numpy as np

from phipsi.compile import Kernel


class LinearOperator(ABC):
    """An operator that is applied, `op @ x`, to arrays (…, *input_shape) of any batch shape.

    At one configuration SciPy's solvers take it for a `LinearOperator` (`shape`, `dtype`, `matvec`,
    `rmatvec`, `matmat`, on flat vectors).
    """

    dtype = np.dtype(float)

    @property
    @abstractmethod
    def input_shape(self) -> tuple[int, ...]:
        """The shape of what it takes, without the batch."""

    @property
    @abstractmethod
    def output_shape(self) -> tuple[int, ...]:
        """The shape of what it gives, without the batch."""

    @property
    @abstractmethod
    def batch_shape(self) -> tuple[int, ...]:
        """The batch of configurations, () for one."""

    @property
    @abstractmethod
    def T(self) -> LinearOperator:
        """The adjoint."""

    @property
    @abstractmethod
    def inv(self) -> LinearOperator:
        """The inverse."""

    @abstractmethod
    def matrix(self) -> np.ndarray:
        """The dense matrix (…, m, n)."""

    @abstractmethod
    def compile(self, **how: Any) -> Kernel:
        """The kernel (q, x) of the recursion; keywords as in `Program.compile`."""

    @abstractmethod
    def __matmul__(self, x: Any) -> np.ndarray: ...

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of the matrix."""
        return prod(self.output_shape), prod(self.input_shape)

    # ---- as SciPy has it -----------------------------------------------------------------------

    @property
    def H(self) -> LinearOperator:
        """The adjoint."""
        return self.T

    def matvec(self, x: Any) -> np.ndarray:
        """The product with a flat vector (n,) or column (n, 1)."""
        self._check_single()
        x = np.asarray(x)
        if x.size != self.shape[1] or x.ndim > 2:
            raise ValueError(f"{self!r} takes a vector of {self.shape[1]}, got shape {x.shape}")
        flat = self @ x.reshape(self.input_shape)
        return flat.reshape(-1) if x.ndim == 1 else flat.reshape(-1, 1)

    def rmatvec(self, x: Any) -> np.ndarray:
        """The product of the adjoint with a flat vector."""
        return self.T.matvec(x)

    def matmat(self, X: Any) -> np.ndarray:
        """The product with the columns of a matrix (n, k)."""
        self._check_single()
        X = np.asarray(X)
        if X.ndim != 2 or len(X) != self.shape[1]:
            raise ValueError(f"{self!r} takes a matrix of {self.shape[1]} rows, got {X.shape}")
        columns = X.T.reshape(X.shape[1], *self.input_shape)
        return (self @ columns).reshape(X.shape[1], -1).T

    def rmatmat(self, X: Any) -> np.ndarray:
        """The product of the adjoint with the columns of a matrix."""
        return self.T.matmat(X)

    def _check_single(self) -> None:
        if self.batch_shape:
            raise ValueError(
                f"{self!r} is a batch of {self.batch_shape} operators; solvers take one at a time"
            )
