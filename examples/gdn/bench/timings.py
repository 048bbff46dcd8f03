"""Times the library, flash-linear-attention's Triton kernels and a scalar kernel on the same tensors in one run."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

import torch
from cases import Buffers, Case, ScalarLibrary, relative_rms

Call = Callable[[Buffers], object]
SETS = 4  # inputs taken in turn, so that small problems do not find theirs in the cache
ROUNDS = 40


def median_us(run: Callable[[], object], calls: int, rounds: int = ROUNDS) -> float:
    """Return the median time of one of the `calls` calls that `run` makes, in microseconds, from CUDA events."""
    for _ in range(3):
        run()
    torch.cuda.synchronize()
    times = []
    for _ in range(rounds):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        run()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end) * 1000 / calls)
    return statistics.median(times)


def eager(call: Call, inputs: list[Buffers], rounds: int = ROUNDS) -> float:
    def run() -> None:
        for buffers in inputs:
            call(buffers)

    return median_us(run, len(inputs), rounds)


def in_graph(call: Call, inputs: list[Buffers], rounds: int = ROUNDS) -> float:
    """Time replays of one graph that holds a call on each input."""
    stream = torch.cuda.Stream()
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        for _ in range(2):
            for buffers in inputs:
                call(buffers)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        for buffers in inputs:
            call(buffers)
    return median_us(graph.replay, len(inputs), rounds)


class Fla:
    """flash-linear-attention on the same numbers: `ready` from its own contiguous tensors, `packed` from ours."""

    def __init__(self) -> None:
        import fla
        from fla.ops.gated_delta_rule import chunk_gated_delta_rule

        self.version = fla.__version__
        self.rule = chunk_gated_delta_rule
        self.prepared: dict[int, tuple[torch.Tensor, ...]] = {}

    @staticmethod
    def prepare(buffers: Buffers) -> tuple[torch.Tensor, ...]:
        q, k, v, alpha, beta = buffers.split()
        return tuple(x.unsqueeze(0).contiguous() for x in (q, k, v, alpha.log(), beta))

    def run(self, buffers: Buffers, tensors: tuple[torch.Tensor, ...]) -> Any:
        return self.rule(
            *tensors, scale=buffers.scale, initial_state=buffers.start.unsqueeze(0), output_final_state=True
        )

    def packed(self, buffers: Buffers) -> Any:
        return self.run(buffers, self.prepare(buffers))

    def ready(self, buffers: Buffers) -> Any:
        if id(buffers) not in self.prepared:
            self.prepared[id(buffers)] = self.prepare(buffers)
        return self.run(buffers, self.prepared[id(buffers)])


class Timings:
    """`gdn` is the generated bridge."""

    def __init__(self, gdn: Any, scalar: ScalarLibrary) -> None:
        self.gdn, self.scalar = gdn, scalar
        self.fla = Fla()

    def ours(self, buffers: Buffers) -> None:
        self.gdn.prefill(*buffers.arguments(torch.cuda.current_stream().cuda_stream))

    def errors(self, tokens: int = 4096) -> dict[str, float]:
        """Relative RMS of the outputs of all three against float64, so that what is timed is known to be right."""
        buffers = Buffers(Case(tokens, state=True), 50)
        expected, _ = self.scalar.reference(buffers)
        result = {"fla": relative_rms(self.fla.packed(buffers)[0][0].flatten(1), expected)}
        for name, call in (("library", self.ours), ("scalar", self.scalar.baseline)):
            buffers.poison()
            call(buffers)
            result[name] = relative_rms(buffers.output, expected)
        return result

    def row(self, tokens: int, nk: int, nv: int) -> dict[str, Any]:
        inputs = [Buffers(Case(tokens, nk, nv), 20 + i) for i in range(SETS)]
        row: dict[str, Any] = {"tokens": tokens, "nk": nk, "nv": nv}
        self.gdn.limit_slots(0)
        row["library_eager"] = eager(self.ours, inputs)
        row["library_graph"] = in_graph(self.ours, inputs)
        self.gdn.limit_slots(1)
        row["library_unsplit_graph"] = in_graph(self.ours, inputs)
        self.gdn.limit_slots(0)
        row["fla_eager"] = eager(self.fla.ready, inputs)
        row["fla_packed_eager"] = eager(self.fla.packed, inputs)
        row["fla_graph"] = in_graph(self.fla.ready, inputs)
        self.fla.prepared.clear()
        row["scalar_graph"] = in_graph(self.scalar.baseline, inputs, rounds=5)
        row["library_graph_again"] = in_graph(self.ours, inputs)
        return row

    def slots(self, tokens: int, nk: int, nv: int) -> dict[str, Any]:
        """Time each number of slots, to see whether the library's own choice is the best."""
        inputs = [Buffers(Case(tokens, nk, nv), 20 + i) for i in range(2)]
        row: dict[str, Any] = {"tokens": tokens, "nk": nk, "nv": nv}
        for slots in (0, 1, 2, 3, 4, 6, 8):
            if slots > 132 // nv:
                break
            self.gdn.limit_slots(slots)
            row["chosen" if slots == 0 else f"slots_{slots}"] = in_graph(self.ours, inputs, rounds=15)
        self.gdn.limit_slots(0)
        return row

    def kernels(self, tokens: int) -> dict[str, float]:
        """Return the time of each kernel of one call, in microseconds."""
        inputs = Buffers(Case(tokens), 20)
        self.ours(inputs)
        torch.cuda.synchronize()
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
            self.ours(inputs)
            torch.cuda.synchronize()
        events = [e for e in profile.events() if e.device_time_total > 0]
        events.sort(key=lambda e: e.time_range.start)
        names = (e.name.replace("(anonymous namespace)::", "").split("(")[0].split("<")[0] for e in events)
        return {f"{n} {name}": e.device_time_total for n, (name, e) in enumerate(zip(names, events, strict=True), 1)}
