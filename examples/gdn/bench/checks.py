"""What the library must do on a real GPU, through the generated Python bridge. Each check returns one row of results."""

from __future__ import annotations

import ctypes
import itertools
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch
from cases import Buffers, Case, ScalarLibrary, reference_loop, relative_rms

LIMIT = 1e-2
TOKENS = (1, 63, 64, 65, 777, 1000, 1024, 4096, 16384)
Row = dict[str, Any]


def correctness_cases() -> Iterator[Case]:
    for tokens in TOKENS:
        yield Case(tokens)
        yield Case(tokens, state=True, pad=3)
    for tokens in (1000, 4096, 16384):
        yield Case(tokens, gate="long", state=True)
    yield Case(4096, gate="one", state=True)
    yield Case(1000, gate="strong")
    yield Case(1000, unit_keys=False, state=True)
    for nk, nv in ((16, 16), (8, 32), (16, 64), (1, 1), (2, 6)):
        yield Case(1000, nk, nv, state=True)
        yield Case(4096, nk, nv, gate="long", state=True, pad=1)
    for slots in (1, 2, 3, 4):  # each way to split, and lengths whose last chunk is partial
        yield Case(777, gate="long", state=True, slots=slots)
        yield Case(2048, gate="long", state=True, slots=slots)
    yield Case(2500, 16, 16, gate="long", state=True, slots=8)


class Checks:
    """`gdn` is the generated bridge, `scalar` has the float64 reference."""

    def __init__(self, gdn: Any, scalar: ScalarLibrary) -> None:
        self.gdn, self.scalar = gdn, scalar

    def reference(self, case: Case) -> Row:
        """The reference itself, against the recurrence written in PyTorch's operators."""
        buffers = Buffers(case, 90)
        pairs = zip(self.scalar.reference(buffers), reference_loop(buffers), strict=True)
        errors = [relative_rms(ours, theirs) for ours, theirs in pairs]
        good = max(errors) < 1e-12
        return {"check": f"{case.name}: float64 kernel", "output": errors[0], "state": errors[1], "ok": good}

    def call(self, buffers: Buffers, stream: torch.cuda.Stream | None = None) -> None:
        self.gdn.limit_slots(buffers.case.slots)
        self.gdn.prefill(*buffers.arguments((stream or torch.cuda.current_stream()).cuda_stream))

    def correctness(self, case: Case, seed: int) -> Row:
        buffers = Buffers(case, seed)
        expected, state = self.scalar.reference(buffers)
        buffers.poison()
        self.call(buffers)
        torch.cuda.synchronize()
        errors = relative_rms(buffers.output, expected), relative_rms(buffers.h_state, state)
        good = max(errors) < LIMIT and buffers.guards_intact()
        return {"check": case.name, "output": errors[0], "state": errors[1], "ok": good}

    def chunked(self) -> Iterator[Row]:
        """A sequence in several calls, the state carried over."""
        for case, borders in (
            (Case(1024, state=True, slots=1), (0, 512, 576, 1024)),
            (Case(777, state=True, slots=1), (0, 300, 777)),
            (Case(16384, state=True, gate="long"), (0, 8192, 16384)),
        ):
            whole, parts = Buffers(case, 1), Buffers(case, 1)
            self.call(whole)
            for first, last in itertools.pairwise(borders):
                arguments = parts.arguments(torch.cuda.current_stream().cuda_stream, first, last - first)
                self.gdn.prefill(*arguments)
            torch.cuda.synchronize()
            errors = (
                relative_rms(parts.output, whole.output.double()),
                relative_rms(parts.h_state, whole.h_state.double()),
            )
            same_bits = max(errors) == 0
            # Borders between chunks, taken one after the other: then the arithmetic is the same, to the bit.
            exact = case.slots == 1 and all(b % 64 == 0 for b in borders)
            good = same_bits if exact else max(errors) < LIMIT
            name = f"{case.name} in calls at {borders[1:-1]}{', same bits' if exact else ''}"
            yield {"check": name, "output": errors[0], "state": errors[1], "ok": good}

    def deterministic(self, case: Case) -> Row:
        runs = []
        for _ in range(4):
            buffers = Buffers(case, 2)
            self.call(buffers)
            runs.append((buffers.output.clone(), buffers.h_state.clone()))
        same = all(torch.equal(a, runs[0][0]) and torch.equal(b, runs[0][1]) for a, b in runs[1:])
        return {"check": f"{case.name}: four runs, same bits", "ok": same}

    def threads(self, case: Case, threads: int, shared: torch.cuda.Stream | None = None, rounds: int = 20) -> Row:
        """Different inputs from several threads at once, on a stream each or on one: as if each had been alone."""
        work = [Buffers(case, 10 + i) for i in range(threads)]
        expected = []
        for buffers in work:
            self.call(buffers)
            torch.cuda.synchronize()
            expected.append((buffers.output.clone(), buffers.h_state.clone()))
        right: list[bool] = []

        def run(index: int) -> None:
            stream = shared or torch.cuda.Stream()
            with torch.inference_mode(), torch.cuda.stream(stream):  # the mode belongs to the thread
                for _ in range(rounds):
                    work[index].poison()
                    self.call(work[index], stream)
                    stream.synchronize()
                    output, state = expected[index]
                    same = torch.equal(work[index].output, output) and torch.equal(work[index].h_state, state)
                    right.append(same)

        all_threads = [threading.Thread(target=run, args=(i,)) for i in range(threads)]
        for thread in all_threads:
            thread.start()
        for thread in all_threads:
            thread.join()
        where = "one stream" if shared else "a stream each"
        good = right == [True] * (threads * rounds)  # a thread that died leaves fewer
        return {"check": f"{case.name}: {threads} threads at once, {where}, {rounds} rounds", "ok": good}

    def stress(self, case: Case, threads: int, seconds: float) -> Row:
        """Calls from several threads while each also makes the driver map and unmap memory, which delays loads."""
        work = [Buffers(case, 60 + i) for i in range(threads)]
        expected = []
        for buffers in work:
            self.call(buffers)
            torch.cuda.synchronize()
            expected.append(buffers.output.clone())
        torch.cuda.synchronize()
        calls, wrong, end = [0] * threads, [0] * threads, time.monotonic() + seconds

        def run(index: int) -> None:
            stream, buffers = torch.cuda.Stream(), work[index]
            with torch.inference_mode(), torch.cuda.stream(stream):  # the mode belongs to the thread
                while time.monotonic() < end:
                    for _ in range(8):
                        buffers.h_state.copy_(buffers.start)
                        self.call(buffers, stream)
                    memory = torch.empty(1 << 26, device="cuda")
                    stream.synchronize()
                    calls[index] += 8
                    wrong[index] += not torch.equal(buffers.output, expected[index])
                    del memory
                    torch.cuda.empty_cache()

        all_threads = [threading.Thread(target=run, args=(i,)) for i in range(threads)]
        for thread in all_threads:
            thread.start()
        for thread in all_threads:
            thread.join()
        name = f"{case.name}: {threads} threads for {seconds:.0f} s while memory comes and goes"
        return {"check": name, "calls": sum(calls), "ok": not any(wrong) and min(calls) > 0}

    def graph(self, case: Case) -> Row:
        """Captured after a warm-up call, replayed on new inputs: the same bits as an eager call."""
        stream, buffers = torch.cuda.Stream(), Buffers(case, 3)
        torch.cuda.synchronize()
        with torch.cuda.stream(stream):
            self.call(buffers, stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            self.call(buffers, stream)
        same = True
        for seed in (4, 5):
            fresh = Buffers(case, seed)
            self.call(fresh)
            buffers.qkv.copy_(fresh.qkv)
            buffers.gate_beta.copy_(fresh.gate_beta)
            buffers.h_state.copy_(fresh.start)
            torch.cuda.synchronize()
            graph.replay()
            torch.cuda.synchronize()
            same &= torch.equal(buffers.output, fresh.output) and torch.equal(buffers.h_state, fresh.h_state)
        return {"check": f"{case.name}: CUDA graph, same bits as eager", "ok": same}

    def capture_without_warm_up(self) -> Row:
        """Refused by its own status, and the capture goes on."""
        stream, buffers, name = torch.cuda.Stream(), Buffers(Case(256), 6), ""
        torch.cuda.synchronize()
        graph, marker = torch.cuda.CUDAGraph(), torch.zeros(1, device="cuda")
        with torch.cuda.graph(graph, stream=stream):
            marker.add_(1)
            try:
                self.call(buffers, stream)
            except self.gdn.StatusError as error:
                name = error.name
        graph.replay()
        torch.cuda.synchronize()
        good = name == "ATLAS_GDN_NEEDS_WARM_UP" and marker.item() == 1
        return {"check": "capture without a warm-up call", "status": name, "ok": good}

    def statuses(self, library: str) -> Iterator[Row]:
        """Each bad argument straight to the library, past the bridge's own checks: its own status, nothing written."""
        call = ctypes.CDLL(library).atlas_gdn_prefill_packed_managed
        pointer, integer = ctypes.c_void_p, ctypes.c_int
        call.argtypes = [pointer] * 4 + [ctypes.c_float] + [integer] * 8 + [pointer]
        for index, value, status in (
            (0, None, "QKV"), (0, 8, "QKV"), (1, None, "GATE_BETA"), (1, 2, "GATE_BETA"), (2, None, "OUTPUT"),
            (2, 8, "OUTPUT"), (3, None, "H_STATE"), (3, 4, "H_STATE"), (4, float("nan"), "SCALE"),
            (4, float("inf"), "SCALE"), (5, 0, "TOTAL_SEQLEN"), (5, -1, "TOTAL_SEQLEN"), (6, 0, "NK"), (7, 0, "NV"),
            (7, 33, "NV"), (8, 64, "KD"), (9, 256, "VD"), (10, 8191, "CONV_DIM"), (10, 8196, "CONV_DIM"),
            (11, 63, "GB_STRIDE"), (12, 0, "NUM_SEQS"), (12, 2, "NUM_SEQS"),
        ):  # fmt: skip
            buffers = Buffers(Case(256), 7)
            arguments = list(buffers.arguments(0))
            arguments[:4] = [x.data_ptr() for x in arguments[:4]]  # type: ignore[attr-defined]
            offset = index < 4 and value is not None
            arguments[index] = arguments[index] + value if offset else value  # type: ignore[operator]
            name = self.gdn.STATUS_NAMES.get(call(*arguments), "?")
            torch.cuda.synchronize()
            untouched = bool((buffers.output == 12345.0).all()) and buffers.guards_intact()
            yield {
                "check": f"argument {index} = {value}",
                "status": name,
                "ok": name == f"ATLAS_GDN_BAD_{status}" and untouched,
            }

    def all(self, library: str) -> Iterator[Row]:
        yield self.reference(Case(130, state=True, pad=1))
        yield self.reference(Case(70, 2, 6, gate="long"))
        for seed, case in enumerate(correctness_cases()):
            yield self.correctness(case, 100 + seed)
        yield from self.chunked()
        for case in (Case(1000, state=True), Case(16384, state=True), Case(16384, slots=1)):
            yield self.deterministic(case)
        yield self.threads(Case(1000, state=True), 2)
        yield self.threads(Case(8192, state=True), 2)
        yield self.threads(Case(2048, 16, 16), 6)
        yield self.threads(Case(4096, state=True), 4, torch.cuda.Stream())
        for case in (Case(1000, state=True), Case(8192, state=True, pad=2)):
            yield self.graph(case)
        yield self.capture_without_warm_up()
        yield from self.statuses(library)
        self.gdn.limit_slots(0)


def guarded(rows: Iterator[Row], log: Callable[[Row], None]) -> list[Row]:
    """Collect `rows`, logging each as it comes."""
    result = []
    for row in rows:
        log(row)
        result.append(row)
    return result
