"""Linear operators with numbers: an expression on a robot at a configuration."""

from __future__ import annotations

from abc import ABC, abstractmethod
from math import prod
from typing import Any

import numpy as np

from phipsi.compile import Kernel, as_numbers
from phipsi.typing import Array, ArrayLike


class LinearOperator(ABC):
    """A linear operator, applied by `op @ x` to arrays (…, *input_shape) of any batch shape.

    At one configuration it has the interface of SciPy's `LinearOperator` (`shape`, `dtype`,
    `matvec`, `rmatvec`, `matmat`, on flat vectors), so that SciPy's solvers take it.
    """

    dtype = np.dtype(float)

    @property
    @abstractmethod
    def input_shape(self) -> tuple[int, ...]:
        """The shape of the vectors that it takes, without the batch."""

    @property
    @abstractmethod
    def output_shape(self) -> tuple[int, ...]:
        """The shape of the vectors that it gives, without the batch."""

    @property
    @abstractmethod
    def batch_shape(self) -> tuple[int, ...]:
        """The batch shape of the configurations, () for one."""

    @property
    @abstractmethod
    def T(self) -> LinearOperator:
        """The adjoint."""

    @property
    @abstractmethod
    def inv(self) -> LinearOperator:
        """The inverse."""

    @abstractmethod
    def matrix(self) -> Array:
        """The dense matrix, column by column.

        Returns
        -------
        (…, m, n)
            The matrix for each configuration.
        """

    @abstractmethod
    def compile(self, **how: Any) -> Kernel[Array]:
        """The kernel (q, x) of the recursion.

        Parameters
        ----------
        **how
            Options of `Program.compile`.

        Returns
        -------
        Kernel
            The compiled kernel, which takes q, v if the operator depends on it, and x.
        """

    @abstractmethod
    def __matmul__(self, x: ArrayLike) -> Array: ...

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of the matrix."""
        return prod(self.output_shape), prod(self.input_shape)

    # ---- the interface of SciPy's LinearOperator -----------------------------------------------

    @property
    def H(self) -> LinearOperator:
        """The adjoint."""
        return self.T

    def matvec(self, x: ArrayLike) -> Array:
        """The product with a flat vector.

        Parameters
        ----------
        x : (n,) or (n, 1)
            The vector.

        Returns
        -------
        (m,) or (m, 1)
            The product.

        Raises
        ------
        ValueError
            If the operator is a batch, or x has another length.
        """
        self._check_single()
        vector = as_numbers("x", x)
        shape = vector.shape
        if vector.size != self.shape[1] or vector.ndim > 2:
            raise ValueError(f"{self!r} takes a vector of {self.shape[1]}, got shape {shape}")
        flat = self @ vector.reshape(self.input_shape)
        return flat.reshape(-1) if vector.ndim == 1 else flat.reshape(-1, 1)

    def rmatvec(self, x: ArrayLike) -> Array:
        """The product of the adjoint with a flat vector.

        Parameters
        ----------
        x : (m,) or (m, 1)
            The vector.

        Returns
        -------
        (n,) or (n, 1)
            The product.
        """
        return self.T.matvec(x)

    def matmat(self, X: ArrayLike) -> Array:
        """The product with the columns of a matrix.

        Parameters
        ----------
        X : (n, k)
            The matrix.

        Returns
        -------
        (m, k)
            The product.

        Raises
        ------
        ValueError
            If the operator is a batch, or X has another number of rows.
        """
        self._check_single()
        matrix = as_numbers("X", X)
        if matrix.ndim != 2 or len(matrix) != self.shape[1]:
            raise ValueError(f"{self!r} takes a matrix of {self.shape[1]} rows, got {matrix.shape}")
        columns = matrix.T.reshape(matrix.shape[1], *self.input_shape)
        return (self @ columns).reshape(matrix.shape[1], -1).T

    def rmatmat(self, X: ArrayLike) -> Array:
        """The product of the adjoint with the columns of a matrix.

        Parameters
        ----------
        X : (m, k)
            The matrix.

        Returns
        -------
        (n, k)
            The product.
        """
        return self.T.matmat(X)

    def _check_single(self) -> None:
        if self.batch_shape:
            raise ValueError(
                f"{self!r} is a batch of {self.batch_shape} operators; solvers take one at a time"
            )
