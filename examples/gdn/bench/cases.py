"""Inputs for the GDN library and the float64 recurrence it is compared with. Needs PyTorch and a GPU."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

import torch

DIM = 128


@dataclass(frozen=True)
class Case:
    """One problem. `gate` says how alpha is drawn, `pad` widens the row strides, `state` starts from a random state."""

    tokens: int
    nk: int = 16
    nv: int = 32
    gate: str = "usual"
    pad: int = 0
    state: bool = False
    unit_keys: bool = True
    slots: int = 0

    @property
    def name(self) -> str:
        extras = [f"{self.nk}/{self.nv}", self.gate]
        extras += [f"pad {self.pad}"] if self.pad else []
        extras += ["state"] if self.state else []
        extras += [] if self.unit_keys else ["raw keys"]
        extras += [f"slots {self.slots}"] if self.slots else []
        return f"T={self.tokens} " + ", ".join(extras)


class Buffers:
    """The packed buffers of a case, with guard values around what the library may write."""

    GUARD_ROWS = 80

    def __init__(self, case: Case, seed: int) -> None:
        self.case = case
        random = torch.Generator("cuda").manual_seed(seed)

        def normal(*shape: int) -> torch.Tensor:
            return torch.randn(*shape, device="cuda", generator=random)

        t, nk, nv = case.tokens, case.nk, case.nv
        self.conv_dim = (2 * nk + nv) * DIM + 8 * case.pad
        self.gb_stride = 2 * nv + 3 * case.pad
        qkv = normal(t, self.conv_dim)
        heads = qkv[:, : 2 * nk * DIM].view(t, 2 * nk, DIM)
        heads /= heads.norm(dim=-1, keepdim=True) if case.unit_keys else DIM**0.5
        self.qkv = qkv.to(torch.bfloat16)
        self.gate_beta = torch.full((t, self.gb_stride), float("nan"), device="cuda")  # padding must not be read
        self.gate_beta[:, :nv] = _alpha(case.gate, torch.rand(t, nv, device="cuda", generator=random))
        self.gate_beta[:, nv : 2 * nv] = torch.rand(t, nv, device="cuda", generator=random)
        if case.pad:
            self.qkv[:, (2 * nk + nv) * DIM :] = float("nan")
        self.start = 0.1 * normal(nv, DIM, DIM) if case.state else torch.zeros(nv, DIM, DIM, device="cuda")
        self.scale = DIM**-0.5
        self.poison()

    def poison(self) -> None:
        """Set the output to what no right result contains, and the state to its start."""
        case = self.case
        rows = case.tokens + self.GUARD_ROWS
        self.output_memory = torch.full((rows, case.nv * DIM), 12345.0, device="cuda", dtype=torch.bfloat16)
        self.output = self.output_memory[: case.tokens]
        self.state_memory = torch.full((case.nv + 1, DIM, DIM), 12345.0, device="cuda")
        self.h_state = self.state_memory[: case.nv]
        self.h_state.copy_(self.start)

    def guards_intact(self) -> bool:
        rows, states = self.output_memory[self.case.tokens :], self.state_memory[self.case.nv :]
        return bool((rows == 12345.0).all() and (states == 12345.0).all())

    def split(self) -> tuple[torch.Tensor, ...]:
        """Return views q, k, v, alpha, beta with heads as their own dimension."""
        nk, nv = self.case.nk, self.case.nv
        q, k, v, _ = self.qkv.split([nk * DIM, nk * DIM, nv * DIM, self.conv_dim - (2 * nk + nv) * DIM], dim=1)
        alpha, beta = self.gate_beta[:, :nv], self.gate_beta[:, nv : 2 * nv]
        return q.unflatten(1, (nk, DIM)), k.unflatten(1, (nk, DIM)), v.unflatten(1, (nv, DIM)), alpha, beta

    def arguments(self, stream: int, first: int = 0, count: int | None = None) -> tuple[object, ...]:
        """Return the arguments of the library's call for `count` tokens from `first`."""
        case = self.case
        rows = slice(first, case.tokens if count is None else first + count)
        return (
            self.qkv[rows],
            self.gate_beta[rows],
            self.output[rows],
            self.h_state,
            self.scale,
            rows.stop - first,
            case.nk,
            case.nv,
            DIM,
            DIM,
            self.conv_dim,
            self.gb_stride,
            1,
            stream,
        )


def _alpha(gate: str, uniform: torch.Tensor) -> torch.Tensor:
    if gate == "usual":
        return 0.9 + 0.1 * uniform
    if gate == "long":  # forgets e-fold in some 20,000 tokens
        return 1 - 1e-4 * uniform
    if gate == "one":
        return torch.ones_like(uniform)
    assert gate == "strong"
    return 0.01 + 0.99 * uniform


class ScalarLibrary:
    """The kernels of scalar_gdn.cu: the fp32 baseline, and the recurrence in float64."""

    def __init__(self, path: str) -> None:
        library = ctypes.CDLL(path)
        pointer, integer = ctypes.c_void_p, ctypes.c_int
        self.fp32, self.fp64 = library.scalar_gdn_prefill, library.reference_gdn_prefill
        for function in (self.fp32, self.fp64):
            function.argtypes = [pointer] * 4 + [ctypes.c_float] + [integer] * 5 + [pointer]

    def _call(self, function: Any, b: Buffers, output: torch.Tensor, state: torch.Tensor) -> None:
        tensors = (x.data_ptr() for x in (b.qkv, b.gate_beta, output, state))
        shape = (b.case.tokens, b.case.nk, b.case.nv, b.conv_dim, b.gb_stride)
        status = function(*tensors, b.scale, *shape, torch.cuda.current_stream().cuda_stream)
        assert status == 0, f"the kernel was refused: CUDA error {status}"

    def baseline(self, buffers: Buffers) -> None:
        """Run the fp32 kernel on the buffers, like the library."""
        self._call(self.fp32, buffers, buffers.output, buffers.h_state)

    def reference(self, buffers: Buffers) -> tuple[torch.Tensor, torch.Tensor]:
        """Return outputs and final state in float64."""
        output = torch.empty(buffers.case.tokens, buffers.case.nv * DIM, device="cuda", dtype=torch.float64)
        state = buffers.start.double()
        self._call(self.fp64, buffers, output, state)
        return output, state


def reference_loop(buffers: Buffers) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the same as `ScalarLibrary.reference` from PyTorch's operators: slow, and written independently."""
    q, k, v, alpha, beta = (x.double() for x in buffers.split())
    group = buffers.case.nv // buffers.case.nk
    q, k = (x.repeat_interleave(group, dim=1) for x in (q, k))
    state = buffers.start.double()
    outputs = []
    for t in range(buffers.case.tokens):
        state = state * alpha[t, :, None, None]
        known = (state * k[t, :, :, None]).sum(1)
        state = state + k[t, :, :, None] * ((v[t] - known) * beta[t, :, None])[:, None, :]
        outputs.append((state * q[t, :, :, None]).sum(1).flatten() * ctypes.c_float(buffers.scale).value)
    return torch.stack(outputs), state


def relative_rms(value: torch.Tensor, expected: torch.Tensor) -> float:
    difference = value.double() - expected
    return float(difference.square().mean().sqrt() / expected.square().mean().sqrt())
