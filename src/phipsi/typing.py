"""The array types of phipsi.

A type is `Annotated[Array, "nv nv"]`: an array whose last axes are those. Leading axes are a batch,
broadcast over the arguments of a call, and are not written. Axes are numbers, sizes of the robot
(`nq`, `nv`, `nb`) or names of other lengths, the same wherever they stand in one signature; ""
is one number for each row of the batch. `program` reads the shapes of its inputs from these types.

Names that end in "Like" are what functions take: arrays of NumPy, CuPy, PyTorch or JAX, lists and
numbers. The others are what they return: arrays of NumPy, or of CuPy if one was given. Inside a
program both are arrays that record what is done to them (`phipsi.compile.Traced`).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from types import UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Protocol,
    TypeAlias,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    runtime_checkable,
)

from numpy.typing import NDArray

T_co = TypeVar("T_co", covariant=True)


@runtime_checkable
class SupportsArray(Protocol):
    """What can become an array of NumPy: arrays of any library."""

    def __array__(self) -> NDArray[Any]:
        """The numbers."""
        ...


@runtime_checkable
class NestedSequence(Protocol[T_co]):
    """A list or tuple of values, of lists of values, and so on; a string is none."""

    def __len__(self, /) -> int: ...
    def __getitem__(self, index: int, /) -> T_co | NestedSequence[T_co]: ...
    def __contains__(self, x: object, /) -> bool: ...
    def __iter__(self, /) -> Iterator[T_co | NestedSequence[T_co]]: ...

    if TYPE_CHECKING:  # NumPy asks for it; at run time tuples do not have it

        def __reversed__(self, /) -> Iterator[T_co | NestedSequence[T_co]]: ...

    def count(self, value: Any, /) -> int:
        """As of a list."""
        ...

    def index(self, value: Any, /) -> int:
        """As of a list."""
        ...


@runtime_checkable
class TracedReal(Protocol):
    """A number that records what is done to it: `phipsi.compile.Node`."""

    def __add__(self, other: Any, /) -> Any: ...
    def __radd__(self, other: Any, /) -> Any: ...
    def __sub__(self, other: Any, /) -> Any: ...
    def __rsub__(self, other: Any, /) -> Any: ...
    def __mul__(self, other: Any, /) -> Any: ...
    def __rmul__(self, other: Any, /) -> Any: ...
    def __truediv__(self, other: Any, /) -> Any: ...
    def __rtruediv__(self, other: Any, /) -> Any: ...
    def __pow__(self, exponent: Any, /) -> Any: ...
    def __neg__(self) -> Any: ...
    def __abs__(self) -> Any: ...
    def __lt__(self, other: Any, /) -> Any: ...
    def __gt__(self, other: Any, /) -> Any: ...
    def __le__(self, other: Any, /) -> Any: ...
    def __ge__(self, other: Any, /) -> Any: ...
    def __float__(self) -> float: ...
    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any: ...


Real: TypeAlias = float | TracedReal
"""A number, which may be traced: only arithmetic and functions of NumPy are used on it."""

Array: TypeAlias = NDArray[Any]
"""An array of numbers, which may be traced."""

ArrayLike: TypeAlias = (
    Array | SupportsArray | float | NestedSequence[float] | NestedSequence[SupportsArray]
)
"""Numbers: an array of any library, nested lists, or one number."""

# ---- results ------------------------------------------------------------------------------------

Scalar: TypeAlias = Annotated[Array, ""]
"""One number for each row of the batch."""
Configuration: TypeAlias = Annotated[Array, "nq"]
"""Joint coordinates q."""
JointVector: TypeAlias = Annotated[Array, "nv"]
"""Joint velocities, accelerations, forces or momenta."""
JointMatrix: TypeAlias = Annotated[Array, "nv nv"]
"""A matrix over joint velocities, such as 𝓜."""
SpatialVector: TypeAlias = Annotated[Array, "6"]
"""[angular; linear]: a velocity, an acceleration, a force or a momentum."""
SpatialVectors: TypeAlias = Annotated[Array, "nb 6"]
"""A spatial vector of each body."""
SpatialMatrix: TypeAlias = Annotated[Array, "6 6"]
"""A matrix over spatial vectors, such as an inertia."""
SpatialMatrices: TypeAlias = Annotated[Array, "nb 6 6"]
"""A spatial matrix of each body."""
Jacobian: TypeAlias = Annotated[Array, "6 nv"]
"""The map from joint velocities to the spatial velocity of a frame."""
Vector3: TypeAlias = Annotated[Array, "3"]
"""A point or direction."""
Pose: TypeAlias = Annotated[Array, "4 4"]
"""A homogeneous transform."""
Poses: TypeAlias = Annotated[Array, "nb 4 4"]
"""The pose of each body in the world."""

# ---- arguments ----------------------------------------------------------------------------------

ScalarLike: TypeAlias = Annotated[ArrayLike, ""]
ConfigurationLike: TypeAlias = Annotated[ArrayLike, "nq"]
JointVectorLike: TypeAlias = Annotated[ArrayLike, "nv"]
SpatialVectorLike: TypeAlias = Annotated[ArrayLike, "6"]
SpatialVectorsLike: TypeAlias = Annotated[ArrayLike, "nb 6"]
PoseLike: TypeAlias = Annotated[ArrayLike, "4 4"]
PosesLike: TypeAlias = Annotated[ArrayLike, "nb 4 4"]
ExternalForces: TypeAlias = SpatialVectorsLike | Mapping[str, SpatialVectorLike]
"""Forces on the bodies, [moment; force]: one for each body, or {frame: force}."""
MaskLike: TypeAlias = Annotated[ArrayLike | str | Sequence[str], "nv", "mask"]
"""Which freedoms: a truth value for each, or names of hinges."""

MAX_AXES = 32
"""The most axes of an argument: more cannot be broadcast by every NumPy."""

# ---- masked arrays ------------------------------------------------------------------------------


def is_masked(value: Any) -> bool:
    """Whether an element of an array, or of an array in a sequence, is masked (`numpy.ma`)."""
    ma = sys.modules.get("numpy.ma")  # without it there are no masked arrays
    if ma is None:
        return False
    if isinstance(value, (list, tuple)):
        return any(map(is_masked, cast("Sequence[Any]", value)))
    return isinstance(value, ma.MaskedArray) and bool(ma.is_masked(value))


# ---- shapes -------------------------------------------------------------------------------------

Shape: TypeAlias = tuple[int | str, ...]
"""The axes of an array without its batch: lengths, or names of lengths."""


def axes(hint: Any) -> Shape | None:
    """The axes that a type names, of a union those of the first member that has some; else None.

    >>> axes(JointMatrix | None)
    ('nv', 'nv')
    """
    for text, *_ in metadata(hint):
        return tuple(int(axis) if axis.isdigit() else axis for axis in text.split())
    return None


def metadata(hint: Any) -> list[tuple[Any, ...]]:
    """What `Annotated` says of a type, or of each member of a union."""
    members = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    return [member.__metadata__ for member in members if get_origin(member) is Annotated]
