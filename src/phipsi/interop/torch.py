"""Programs as functions of PyTorch tensors, with derivatives of any order.

    forward = pp.torch.function(pp.forward_dynamics, robot)
    a = forward(q, v, tau)  # tensors (…, n) of any leading shape, on the CPU or on one GPU

Tensors are read in place and results are written into new tensors: only tensors of another number
type, or whose rows are not contiguous, are copied. On a GPU kernels run on
PyTorch's current stream. `backward`, forward-mode derivatives, `torch.func` and `torch.compile` see
one operation; its derivatives are kernels too, made when first needed.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any, Protocol, cast

import numpy as np

from phipsi.compile import Dtype
from phipsi.interop.arrays import Bound, Flat, Leaf, Shape, bounds
from phipsi.model import Robot
from phipsi.programs import Program
from phipsi.typing import Array

try:  # by name: type checkers would take `import torch` for this file where PyTorch is missing
    torch: Any = importlib.import_module("torch")
except ImportError:
    raise ImportError('pp.torch needs PyTorch: pip install "phipsi[torch]"') from None

__all__ = ["function"]


class Device(Protocol):
    """The part of `torch.device` that is used here."""

    @property
    def index(self) -> int: ...


class Tensor(Protocol):
    """The part of `torch.Tensor` that is used here."""

    @property
    def shape(self) -> Shape: ...
    @property
    def dtype(self) -> object: ...
    @property
    def device(self) -> Device: ...
    @property
    def is_cuda(self) -> bool: ...
    def clone(self) -> Tensor: ...
    def contiguous(self) -> Tensor: ...
    def data_ptr(self) -> int: ...
    def detach(self) -> Tensor: ...
    def dim(self) -> int: ...
    def expand(self, shape: Shape, /) -> Tensor: ...
    def is_complex(self) -> bool: ...
    def is_floating_point(self) -> bool: ...
    def movedim(self, source: int, destination: int, /) -> Tensor: ...
    def new_empty(self, shape: Shape, /) -> Tensor: ...
    def numel(self) -> int: ...
    def numpy(self) -> Array: ...
    def resolve_neg(self) -> Tensor: ...
    def stride(self) -> Shape: ...
    def to(self, *, dtype: object, device: str) -> Tensor: ...
    def __getitem__(self, index: tuple[int, ...], /) -> Tensor: ...


class Context(Protocol):
    """What PyTorch keeps of an operation for its derivatives."""

    kernel: str
    flat: Flat

    @property
    def saved_tensors(self) -> tuple[Tensor, ...]: ...
    @property
    def needs_input_grad(self) -> tuple[Any, ...]: ...
    def save_for_backward(self, *tensors: Tensor) -> None: ...
    def save_for_forward(self, *tensors: Tensor) -> None: ...


def function(
    program: Program[..., Any], robot: Robot, *, inputs: str | Sequence[str] = (), **fixed: Any
) -> Callable[..., Any]:
    """The program on one robot as a function of tensors.

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
        `fixed`, in its order or by name. All tensors must be on one device; the number type is
        theirs, float64 if any is float64. Results are tensors, packed as the program packs them.

    Examples
    --------
    >>> import phipsi as pp, torch
    >>> robot = pp.robots.double_pendulum()
    >>> energy = pp.torch.function(pp.potential_energy, robot)
    >>> q = torch.zeros(5, 2, dtype=torch.float64, requires_grad=True)
    >>> energy(q).sum().backward()
    >>> q.grad.shape
    torch.Size([5, 2])
    """
    call: Any = partial(_call, Bound(program, robot, inputs, fixed))
    call.__name__, call.__doc__ = program.name, program.__doc__
    return call


def _call(bound: Bound, *args: Any, **named: Any) -> Any:
    """The function of a bound program."""
    program = bound.program
    options, arrays = bound.split(bound.arguments(args, named))
    tensors = _alike(program.name, arrays, double=program.verified)
    dtype: Dtype = "float32" if tensors[0].dtype == torch.float32 else "float64"
    names = tuple((name, key) for name, key, _ in arrays)
    ranks = _ranks(bound.key, names)
    shapes = tuple(
        tuple(
            len(range(n)) for n in (x.shape[-r:] if r else ())
        )  # numbers, also where torch.compile has symbols
        for x, r in zip(tensors, ranks, strict=True)
    )
    how = (tuple(options.items()), names, shapes, dtype)
    kernel = _planned(bound.key, how, torch.compiler.is_compiling())
    return bound.packs[kernel](list(_called(kernel, tensors)))


def _alike(name: str, arrays: list[Leaf], double: bool) -> list[Tensor]:
    """All arrays as tensors on one device and of one number type; what is no tensor is copied."""
    given: dict[str, Tensor] = {
        key or name: x for name, key, x in arrays if isinstance(x, torch.Tensor)
    }
    for what, key, x in arrays:
        if _is_list_of_tensors(x):
            raise TypeError(f"{name}: {key or what} is a list of tensors; use torch.stack")
    kinds = {x.dtype for x in given.values() if x.is_floating_point()}
    for what, x in given.items():
        if x.is_complex() or (x.is_floating_point() and x.dtype not in _FLOATS):
            raise TypeError(f"{name}: {what} is {x.dtype}, needs torch.float32 or torch.float64")
    single = kinds == {torch.float32} and not double
    dtype = torch.float32 if single else torch.float64
    devices = {str(x.device): what for what, x in given.items()}
    if len(devices) > 1:
        where = ", ".join(f"{what} on {device}" for device, what in devices.items())
        raise ValueError(f"{name}: tensors are on several devices ({where}); move them to one")
    device = next(iter(devices), "cpu")
    if not device.startswith(("cpu", "cuda")):
        raise ValueError(f"{name}: tensors are on {device}, needs the CPU or a CUDA device")
    how: dict[str, Any] = {"dtype": dtype, "device": device}
    return [
        x.to(**how) if isinstance(x, torch.Tensor) else torch.as_tensor(x, **how).clone()
        for _, _, x in arrays
    ]


def _is_list_of_tensors(x: object) -> bool:
    return isinstance(x, (list, tuple)) and any(map(torch.is_tensor, cast("Sequence[Any]", x)))


# ---- kernels by their keys: the constants by which compiled code of PyTorch knows them ----------

Call = tuple[tuple[tuple[str, Any], ...], tuple[tuple[str, str], ...], tuple[Shape, ...], Dtype]
"""Options, names of the arrays, their shapes without the batch, and the number type of a call."""

_FLOATS = (torch.float32, torch.float64)
_compiled: set[Flat] = set()
"""Kernels that compiled code knows by key alone; kept here so that they live on."""


@torch.compiler.assume_constant_result
def _ranks(bound: str, names: tuple[tuple[str, str], ...]) -> tuple[int, ...]:
    """How many axes of each array are not its batch."""
    return tuple(bounds[bound].rank(*name) for name in names)


@torch.compiler.assume_constant_result
def _planned(bound: str, how: Call, compiling: bool) -> str:
    """The key of the kernel for a call."""
    options, names, shapes, dtype = how
    arrays = [(*name, shape) for name, shape in zip(names, shapes, strict=True)]
    flat = bounds[bound].flat(dict(options), arrays, dtype)
    if compiling:
        _compiled.add(flat)
    return flat.key


@torch.compiler.assume_constant_result
def _cores(kernel: str) -> tuple[Shape, ...]:
    """The shapes of the inputs without the batch."""
    return Flat.of(kernel).inputs


@torch.compiler.assume_constant_result
def _derivative(kernel: str, wrt: tuple[int, ...], forward: bool) -> str:
    """The key of the derivative by some inputs."""
    flat = Flat.of(kernel)
    return (flat.pushforward(wrt) if forward else flat.pullback(wrt)).key


def _plain(kernel: str, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """The kernel on plain tensors of one batch shape."""
    flat = Flat.of(kernel)
    if tensors[0].is_cuda:
        return _run_cuda(flat, tensors)
    try:
        arrays = [x.detach().resolve_neg().numpy() for x in tensors]
    except RuntimeError:
        if any(map(torch._C._functorch.is_legacy_batchedtensor, tensors)):
            name = flat.kernel.name
            raise TypeError(f"{name}: is_grads_batched is not supported; use torch.func") from None
        raise
    results = flat.on()(*arrays)
    results = results if len(flat.outputs) > 1 else (results,)
    return tuple(torch.from_numpy(np.asarray(y)) for y in results)


def _run_cuda(flat: Flat, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """The kernel on a GPU, on PyTorch's current stream, with results in PyTorch's memory."""
    first = tensors[0]
    batch = flat.lead(0, first.shape)
    rows, device = prod(batch), first.device
    results = tuple(first.new_empty((*batch, *shape)) for shape in flat.outputs)
    lines = [_in_rows(x, len(batch)) for x in tensors]
    places = [
        (x.data_ptr(), prod(core) * own) for (x, own), core in zip(lines, flat.inputs, strict=True)
    ]
    places += [(y.data_ptr(), prod(core)) for y, core in zip(results, flat.outputs, strict=True)]
    stream = torch.cuda.current_stream(device).cuda_stream
    flat.on("cuda").at(rows, places, device.index, stream)
    return results


def _in_rows(x: Tensor, axes: int) -> tuple[Tensor, bool]:
    """The tensor with its rows contiguous, and True; or the one row that the whole batch shares
    (all strides of the `axes` of the batch are zero), and False."""
    if any(x.stride()[:axes]):
        return x.contiguous(), True
    return x[(0,) * axes].contiguous() if x.numel() else x, False


_run: Callable[[str, Sequence[Tensor]], tuple[Tensor, ...]] = torch.compiler.disable(_plain)
"""`_plain`, which torch.compile does not trace."""


# ---- one operation of PyTorch ------------------------------------------------------------------


def _called(kernel: str, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """The kernel on tensors whose batch shapes broadcast."""
    if not torch.compiler.is_compiling():
        batch = Flat.of(kernel).batch([x.shape for x in tensors])
        cores = Flat.of(kernel).inputs
        return _Call.apply(kernel, *_wide(tensors, batch, cores))
    if torch._C._are_functorch_transforms_active():
        return _Call.apply(kernel, *_wide(tensors, None, _cores(kernel)))
    return _operated(kernel, tensors)


def _operated(kernel: str, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """The kernel as one operation of a graph of torch.compile."""
    wide = _wide(tensors, None, _cores(kernel))
    return tuple(_operation(kernel, wide))


def _wide(tensors: Sequence[Tensor], batch: Shape | None, cores: tuple[Shape, ...]) -> list[Tensor]:
    """Every tensor broadcast to the whole batch; `batch` None: found here, also from shapes that
    are symbols in a trace of PyTorch."""
    leads = (x.shape[: x.dim() - len(core)] for x, core in zip(tensors, cores, strict=True))
    lead: Shape = torch.broadcast_shapes(*leads) if batch is None else batch
    return [x.expand((*lead, *core)) for x, core in zip(tensors, cores, strict=True)]


class _Call(torch.autograd.Function):
    """A kernel with its derivatives, which are calls again."""

    @staticmethod
    def forward(kernel: str, *tensors: Tensor) -> tuple[Tensor, ...]:
        if torch._C._len_torch_dispatch_stack():  # operations are recorded, there are no numbers
            return tuple(_operation(kernel, list(tensors)))
        return _run(kernel, tensors)

    @staticmethod
    def setup_context(ctx: Context, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        ctx.kernel, ctx.flat = inputs[0], Flat.of(inputs[0])  # keeps the kernel alive
        ctx.save_for_backward(*inputs[1:])
        ctx.save_for_forward(*inputs[1:])

    @staticmethod
    def backward(ctx: Context, *cotangents: Tensor) -> tuple[Tensor | None, ...]:
        return None, *_gradients(_called, ctx, ctx.needs_input_grad[1:], cotangents)

    @staticmethod
    def jvp(ctx: Context, *tangents: Tensor | None) -> tuple[Tensor, ...]:
        changing = {i: x for i, x in enumerate(tangents[1:]) if x is not None}
        wrt, given = tuple(changing), list(changing.values())
        return _called(_derivative(ctx.kernel, wrt, True), [*ctx.saved_tensors, *given])

    @staticmethod
    def vmap(
        info: object, in_dims: tuple[int | None, ...], kernel: str, *tensors: Tensor
    ) -> tuple[tuple[Tensor, ...], tuple[int, ...]]:
        moved = [
            x if at is None else x.movedim(at, 0)
            for x, at in zip(tensors, in_dims[1:], strict=True)
        ]
        results = _called(kernel, moved)
        return results, (0,) * len(results)


def _gradients(
    call: Callable[[str, Sequence[Tensor]], tuple[Tensor, ...]],
    ctx: Context,
    needed: Sequence[bool],
    cotangents: Sequence[Tensor],
) -> list[Tensor | None]:
    """The gradients by the inputs where they are needed, else None; `call` runs the kernel."""
    wrt = tuple(i for i, asked in enumerate(needed) if asked)
    tensors = ctx.saved_tensors
    found = call(_derivative(ctx.kernel, wrt, False), [*tensors, *cotangents])
    gradients: list[Tensor | None] = [None] * len(tensors)
    for i, x in zip(wrt, found, strict=True):
        gradients[i] = x
    return gradients


@torch.library.custom_op(
    "phipsi::kernel", mutates_args=(), schema="(str kernel, Tensor[] tensors) -> Tensor[]"
)
def _operation(kernel: str, tensors: list[Tensor]) -> list[Tensor]:
    """The kernel as an operation whose shapes torch.compile can know before there are numbers."""
    return list(_run(kernel, tensors))


@_operation.register_fake
def _(kernel: str, tensors: list[Tensor]) -> list[Tensor]:
    flat, first = Flat.of(kernel), tensors[0]
    return [first.new_empty((*flat.lead(0, first.shape), *shape)) for shape in flat.outputs]


def _keep(ctx: Context, inputs: tuple[str, list[Tensor]], output: list[Tensor]) -> None:
    ctx.kernel = inputs[0]
    ctx.save_for_backward(*inputs[1])


def _backward(ctx: Context, cotangents: list[Tensor]) -> tuple[None, list[Tensor | None]]:
    return None, _gradients(_operated, ctx, ctx.needs_input_grad[1], cotangents)


_operation.register_autograd(_backward, setup_context=_keep)
