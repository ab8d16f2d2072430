"""Programs as functions of JAX arrays, with derivatives of any order in both modes.

    forward = pp.jax.function(pp.forward_dynamics, robot)
    a = jax.jit(forward)(q, v, tau)  # arrays (…, n) of any leading shape, on the CPU or on a GPU

Under `jit` a call is one operation, a callback that reads and writes XLA's own buffers: nothing is
copied, and on a GPU it runs on XLA's stream, but XLA cannot fuse it with other operations, and
Python is entered once for each call. Outside `jit` it is compiled as a function of its own. It has
rules for `grad`, `jvp` and `vmap`; its derivatives are kernels too, made when first needed.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

import numpy as np

from phipsi.compile import Dtype
from phipsi.interop.arrays import Bound, Flat, Leaf, Shape
from phipsi.model import Robot
from phipsi.programs import Program

try:  # by name: type checkers would take `import jax` for this file where JAX is missing
    jax: Any = importlib.import_module("jax")
    jnp: Any = importlib.import_module("jax.numpy")
    jax_core: Any = importlib.import_module("jax.core")
    buffers: Any = importlib.import_module("jax.experimental.buffer_callback")
    extend_core: Any = importlib.import_module("jax.extend.core")
    ad: Any = importlib.import_module("jax.interpreters.ad")
    batching: Any = importlib.import_module("jax.interpreters.batching")
    mlir: Any = importlib.import_module("jax.interpreters.mlir")
except ImportError:
    raise ImportError('pp.jax needs JAX 0.7 or later: pip install "phipsi[jax]"') from None

__all__ = ["function"]


class JaxArray(Protocol):
    """The part of `jax.Array`, and of JAX's tracers, that is used here."""

    @property
    def shape(self) -> Shape: ...
    @property
    def ndim(self) -> int: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...
    @property
    def weak_type(self) -> bool: ...
    def astype(self, dtype: object, /) -> JaxArray: ...
    def reshape(self, shape: Shape, /) -> JaxArray: ...
    def sum(self, axis: tuple[int, ...], /) -> JaxArray: ...


class CallbackContext(Protocol):
    """What XLA gives a callback."""

    @property
    def stream(self) -> int: ...


Callback = Callable[..., None]
"""(flat, context, results, *values): runs the kernel on XLA's buffers."""


def function(
    program: Program[..., Any], robot: Robot, *, inputs: str | Sequence[str] = (), **fixed: Any
) -> Callable[..., Any]:
    """The program on one robot as a function of JAX arrays.

    Parameters
    ----------
    program
        The program.
    robot
        The robot.
    inputs
        Names of numbers of the robot (see `Robot.parameter`) that become arguments after the
        program's own.
    **fixed
        Arguments of the program that stay the same in every call: options, and arrays.

    Returns
    -------
    Callable
        A function whose arguments are the program's without the robot and without those in
        `fixed`, in its order or by name. The number type is that of the arrays, float64 if any is
        float64; without `jax_enable_x64` it is float32. Results are JAX arrays, packed as the
        program packs them.

    Examples
    --------
    >>> import jax, phipsi as pp
    >>> robot = pp.robots.double_pendulum()
    >>> energy = pp.jax.function(pp.potential_energy, robot)
    >>> jax.grad(lambda q: energy(q).sum())(jax.numpy.zeros((5, 2))).shape
    (5, 2)
    """
    call: Any = partial(_call, Bound(program, robot, inputs, fixed))
    call.__name__, call.__doc__ = program.name, program.__doc__
    return call


def _call(bound: Bound, *args: Any, **named: Any) -> Any:
    """The function of a bound program."""
    program = bound.program
    options, arrays = bound.split(bound.arguments(args, named))
    values = _alike(program.name, arrays, double=program.verified)
    shapes = [(name, key, x.shape) for (name, key, _), x in zip(arrays, values, strict=True)]
    dtype: Dtype = "float32" if values[0].dtype.name == "float32" else "float64"
    flat = bound.flat(options, shapes, dtype)
    flat.batch([x.shape for x in values])
    return bound.packs[flat.key](list(_kernel.bind(*values, flat=flat)))


def _alike(name: str, arrays: list[Leaf], double: bool) -> list[JaxArray]:
    """All arrays as JAX's, of one number type, which plain numbers do not decide."""
    values: list[JaxArray] = [jnp.asarray(x) for _, _, x in arrays]
    for (argument, key, _), x in zip(arrays, values, strict=True):
        float16 = jnp.issubdtype(x.dtype, jnp.floating) and x.dtype.itemsize < 4
        if float16 or not (jnp.issubdtype(x.dtype, jnp.floating) or x.dtype.kind in "iub"):
            raise TypeError(f"{name}: {key or argument} is {x.dtype}, needs float32 or float64")
    kinds = {
        x.dtype
        for x, (_, _, given) in zip(values, arrays, strict=True)
        if x.dtype.kind == "f" and hasattr(given, "dtype") and not x.weak_type
    }
    single = kinds == {jnp.dtype("float32")} and not double
    dtype = jnp.float32 if single else jnp.result_type(float)
    return [x.astype(dtype) for x in values]


_kernel: Any = extend_core.Primitive("phipsi")
"""The operation of JAX that runs a kernel; its parameter `flat` is the kernel."""

_kernel.multiple_results = True


@_kernel.def_impl
def _(*values: JaxArray, flat: Flat) -> list[JaxArray]:
    if "jitted" not in vars(flat):
        vars(flat)["jitted"] = jax.jit(partial(_kernel.bind, flat=flat))
    with jax.disable_jit(False):
        return vars(flat)["jitted"](*values)


@_kernel.def_abstract_eval
def _(*values: JaxArray, flat: Flat) -> list[Any]:
    batch = flat.batch([x.shape for x in values])
    dtype = np.dtype(flat.kernel.dtype)
    return [jax_core.ShapedArray((*batch, *shape), dtype) for shape in flat.outputs]


# ---- running -----------------------------------------------------------------------------------


def _on_cpu(flat: Flat, ctx: CallbackContext, results: Sequence[object], *values: object) -> None:
    flat.on().run([np.asarray(x) for x in values], out=[np.asarray(y) for y in results])


def _on_cuda(flat: Flat, ctx: CallbackContext, results: Sequence[object], *values: object) -> None:
    kernel = flat.on("cuda")  # raises where CuPy is missing
    cupy: Any = importlib.import_module("cupy")
    with cupy.cuda.ExternalStream(ctx.stream):
        arrays, targets = ([cupy.asarray(x) for x in xs] for xs in (values, results))
    with arrays[0].device, cupy.cuda.ExternalStream(ctx.stream):
        kernel(*arrays, out=targets)


def _lowered(run: Callback, backend: str | None = None) -> Any:
    """The rule that lowers the operation to a callback."""

    def called(*values: JaxArray, flat: Flat) -> Any:
        flat.on(backend)  # a missing backend raises here rather than within the callback
        batch = flat.batch([x.shape for x in values])
        kinds = [jax.ShapeDtypeStruct((*batch, *s), flat.kernel.dtype) for s in flat.outputs]
        return buffers.buffer_callback(partial(run, flat), kinds)(*values)

    return mlir.lower_fun(called, multiple_results=True)


mlir.register_lowering(_kernel, _lowered(_on_cpu), platform="cpu")
mlir.register_lowering(_kernel, _lowered(_on_cuda, "cuda"), platform="cuda")


# ---- batches and derivatives -------------------------------------------------------------------


def _batched(
    values: Sequence[JaxArray], axes: Sequence[int | None], *, flat: Flat
) -> tuple[list[JaxArray], list[int]]:
    """The rule for `vmap`: its axis becomes the first of the batch."""
    leads = [flat.lead(i, x.shape) for i, x in enumerate(values)]
    deepest = max(len(n) - (at is not None) for n, at in zip(leads, axes, strict=True))
    moved: list[JaxArray] = []
    for x, lead, at in zip(values, leads, axes, strict=True):
        if at is not None:
            x = jnp.moveaxis(x, at, 0)
            x = jnp.expand_dims(x, tuple(range(1, deepest - len(lead) + 2)))
        moved.append(x)
    results: list[JaxArray] = _kernel.bind(*moved, flat=flat)
    return results, [0] * len(results)


def _jvp(
    primals: Sequence[JaxArray], tangents: Sequence[Any], *, flat: Flat
) -> tuple[list[JaxArray], list[JaxArray]]:
    wrt = [i for i, t in enumerate(tangents) if type(t) is not ad.Zero]
    rates = [tangents[i] for i in wrt]
    return (
        _kernel.bind(*primals, flat=flat),
        _kernel.bind(*primals, *rates, flat=flat.pushforward(wrt)),
    )


def _transposed(cotangents: Sequence[Any], *values: Any, flat: Flat) -> list[JaxArray | None]:
    """The transpose in the inputs without values, in which the kernel is linear."""
    linear = [i for i, x in enumerate(values) if ad.is_undefined_primal(x)]
    transpose, used = flat.transposed(linear)
    known = (values[i] for i in used)
    known = (  # the transpose does not depend on values that are missing: zeros will do
        jnp.zeros(x.aval.shape, x.aval.dtype) if ad.is_undefined_primal(x) else x for x in known
    )
    given = (ad.instantiate_zeros(c) for c in cotangents)
    found = _kernel.bind(*known, *given, flat=transpose)
    results: list[JaxArray | None] = [None] * len(values)
    for i, y in zip(linear, found, strict=True):
        results[i] = _summed(y, values[i].aval.shape)
    return results


def _summed(x: JaxArray, shape: Shape) -> JaxArray:
    """The sum of x over the axes along which an array of this shape was broadcast."""
    if x.shape == shape:
        return x
    lead = x.ndim - len(shape)
    spread = tuple(i for i, n in enumerate(shape) if n == 1 and x.shape[lead + i] != 1)
    return x.sum((*range(lead), *(lead + i for i in spread))).reshape(shape)


batching.primitive_batchers[_kernel] = _batched
ad.primitive_jvps[_kernel] = _jvp
ad.primitive_transposes[_kernel] = _transposed
