"""Programs as functions of PyTorch tensors, with derivatives of any order.

    forward = pp.torch.function(pp.forward_dynamics, robot)
    a = forward(q, v, tau)  # tensors (…, n) of any leading shape, on the CPU or on one GPU

Tensors are read where they are and results are written into new ones: nothing is copied but what
has another number type or rows that do not lie one behind the other. On a GPU kernels run on
PyTorch's current stream. `backward`, forward-mode derivatives, `torch.func` and `torch.compile` see
one operation; its derivatives are kernels too, made when first needed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from phipsi.interop.arrays import Bound, Flat, bounds
from phipsi.model import Robot
from phipsi.programs import Program

try:
    import torch
except ImportError:
    raise ImportError('pp.torch needs PyTorch: pip install "phipsi[torch]"') from None

__all__ = ["function"]


def function(
    program: Program[..., Any], robot: Robot, *, inputs: Sequence[str] = (), **fixed: Any
) -> Callable[..., Any]:
    """The program on one robot as a function of tensors, results packed as the program packs them.

    Arguments are the program's without the robot, in its order or by name; those given here are
    `fixed`. `inputs` names numbers of the robot (see `Robot.parameter`) that become arguments after
    the others. All tensors are on one device; the number type is theirs, float64 if any is.

    >>> import phipsi as pp, torch
    >>> robot = pp.robots.double_pendulum()
    >>> energy = pp.torch.function(pp.potential_energy, robot)
    >>> q = torch.zeros(5, 2, dtype=torch.float64, requires_grad=True)
    >>> energy(q).sum().backward()
    >>> q.grad.shape
    torch.Size([5, 2])
    """
    bound = Bound(program, robot, inputs, fixed)

    def call(*args: Any, **named: Any) -> Any:
        options, arrays = bound.split(bound.arguments(args, named))
        tensors = _alike(program.name, arrays, double=program.verified)
        dtype = "float32" if tensors[0].dtype == torch.float32 else "float64"
        names = tuple((name, key) for name, key, _ in arrays)
        ranks = _ranks(bound.key, names)
        shapes = tuple(
            tuple(len(range(n)) for n in (x.shape[-r:] if r else ()))  # numbers, not symbols
            for x, r in zip(tensors, ranks, strict=True)
        )
        how = (tuple(options.items()), names, shapes, dtype)
        kernel = _planned(bound.key, how, torch.compiler.is_compiling())
        return bound.packs[kernel](list(_called(kernel, tensors)))

    call.__name__, call.__doc__ = program.name, program.__doc__
    return call


def _alike(name: str, arrays: list[tuple[str, str, Any]], double: bool) -> list[torch.Tensor]:
    """Every array as a tensor, all on one device and of one number type; others are copied."""
    given = {key or name: x for name, key, x in arrays if isinstance(x, torch.Tensor)}
    for what, key, x in arrays:
        if isinstance(x, (list, tuple)) and any(isinstance(e, torch.Tensor) for e in x):
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


# ---- kernels by their keys, which is how traces of PyTorch know them ---------------------------

_FLOATS = (torch.float32, torch.float64)
_compiled: set[Flat] = set()
"""Kernels that compiled code knows by key alone."""


@torch.compiler.assume_constant_result
def _ranks(bound: str, names: Any) -> tuple[int, ...]:
    """How many axes of each array are its own; of the others, the batch, none is looked at."""
    return tuple(bounds[bound].rank(*name) for name in names)


@torch.compiler.assume_constant_result
def _planned(bound: str, how: Any, compiling: bool) -> str:
    """The key of the kernel for a call."""
    options, names, shapes, dtype = how
    arrays = [(*name, shape) for name, shape in zip(names, shapes, strict=True)]
    flat = bounds[bound].flat(dict(options), arrays, dtype)
    if compiling:
        _compiled.add(flat)
    return flat.key


@torch.compiler.assume_constant_result
def _cores(kernel: str) -> tuple[tuple[int, ...], ...]:
    return Flat.of(kernel).inputs


@torch.compiler.assume_constant_result
def _derivative(kernel: str, wrt: tuple[int, ...], forward: bool) -> str:
    flat = Flat.of(kernel)
    return (flat.pushforward(wrt) if forward else flat.pullback(wrt)).key


def _plain(kernel: str, tensors: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
    """The kernel on plain tensors of one batch shape."""
    flat = Flat.of(kernel)
    if tensors[0].is_cuda:
        return _run_cuda(flat, tensors)
    try:
        arrays = [x.detach().resolve_neg().numpy() for x in tensors]
    except RuntimeError:
        if any(map(torch._C._functorch.is_legacy_batchedtensor, tensors)):  # pyright: ignore[reportAttributeAccessIssue]
            name = flat.kernel.name
            raise TypeError(f"{name}: is_grads_batched is not supported; use torch.func") from None
        raise
    results = flat.on()(*arrays)
    results = results if len(flat.outputs) > 1 else (results,)
    return tuple(torch.from_numpy(np.asarray(y)) for y in results)


def _run_cuda(flat: Flat, tensors: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
    """The same on a GPU, on PyTorch's current stream; results are in PyTorch's memory."""
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


def _in_rows(x: torch.Tensor, axes: int) -> tuple[torch.Tensor, bool]:
    """A tensor with one row behind the other, or of one row only, and whether each has its own."""
    if any(x.stride()[:axes]):
        return x.contiguous(), True
    return x[(0,) * axes].contiguous() if x.numel() else x, False


_run: Callable[..., Any] = torch.compiler.disable(_plain)
"""The kernel, into which torch.compile does not look."""


# ---- one operation of PyTorch ------------------------------------------------------------------


def _called(kernel: str, tensors: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
    """The kernel on tensors whose batch shapes go together."""
    if not torch.compiler.is_compiling():
        batch = Flat.of(kernel).batch([x.shape for x in tensors])
        cores = Flat.of(kernel).inputs
        return _Call.apply(kernel, *_wide(tensors, batch, cores))
    if torch._C._are_functorch_transforms_active():
        return _Call.apply(kernel, *_wide(tensors, None, _cores(kernel)))
    return _operated(kernel, tensors)


def _operated(kernel: str, tensors: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
    """The same as one operation for torch.compile."""
    wide = _wide(tensors, None, _cores(kernel))
    return tuple(_operation(kernel, wide))  # pyright: ignore[reportCallIssue]


def _wide(tensors: Sequence[torch.Tensor], batch: Any, cores: Any) -> list[torch.Tensor]:
    """Every tensor over the whole batch, of which shapes that are only symbols tell too."""
    if batch is None:
        leads = (x.shape[: x.dim() - len(core)] for x, core in zip(tensors, cores, strict=True))
        batch = torch.broadcast_shapes(*leads)
    return [x.expand((*batch, *core)) for x, core in zip(tensors, cores, strict=True)]


class _Call(torch.autograd.Function):
    """A kernel with its derivatives, which are calls again."""

    @staticmethod
    def forward(kernel: str, *tensors: torch.Tensor) -> Any:
        if torch._C._len_torch_dispatch_stack():  # someone records operations, not numbers
            return tuple(_operation(kernel, list(tensors)))  # pyright: ignore[reportCallIssue]
        return _run(kernel, tensors)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.kernel, ctx.flat = inputs[0], Flat.of(inputs[0])  # which lives as long as this does
        ctx.save_for_backward(*inputs[1:])
        ctx.save_for_forward(*inputs[1:])

    @staticmethod
    def backward(ctx: Any, *cotangents: torch.Tensor) -> Any:
        return None, *_gradients(_called, ctx, ctx.needs_input_grad[1:], cotangents)

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        tangents = tangents[1:]
        wrt = tuple(i for i, x in enumerate(tangents) if x is not None)
        given = [tangents[i] for i in wrt]
        return _called(_derivative(ctx.kernel, wrt, True), [*ctx.saved_tensors, *given])

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        kernel, *tensors = args
        moved = [
            x if at is None else x.movedim(at, 0)
            for x, at in zip(tensors, in_dims[1:], strict=True)
        ]
        results = _called(kernel, moved)
        return results, (0,) * len(results)


def _gradients(
    call: Any, ctx: Any, needed: Sequence[bool], cotangents: Sequence[torch.Tensor]
) -> list[Any]:
    wrt = tuple(i for i, asked in enumerate(needed) if asked)
    tensors = ctx.saved_tensors
    found = call(_derivative(ctx.kernel, wrt, False), [*tensors, *cotangents])
    gradients: list[Any] = [None] * len(tensors)
    for i, x in zip(wrt, found, strict=True):
        gradients[i] = x
    return gradients


@torch.library.custom_op("phipsi::kernel", mutates_args=())
def _operation(kernel: str, tensors: list[torch.Tensor]) -> list[torch.Tensor]:
    """The same for torch.compile, which needs to know shapes before there are numbers."""
    return list(_run(kernel, tensors))


@_operation.register_fake
def _(kernel: str, tensors: list[torch.Tensor]) -> list[torch.Tensor]:
    flat, first = Flat.of(kernel), tensors[0]
    return [first.new_empty((*flat.lead(0, first.shape), *shape)) for shape in flat.outputs]


def _keep(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.kernel = inputs[0]
    ctx.save_for_backward(*inputs[1])


def _backward(ctx: Any, cotangents: list[torch.Tensor]) -> Any:
    return None, _gradients(_operated, ctx, ctx.needs_input_grad[1], cotangents)


_operation.register_autograd(_backward, setup_context=_keep)
