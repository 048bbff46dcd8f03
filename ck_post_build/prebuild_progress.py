"""Shows how a prebuild gets on: a bar on a terminal, a line for each compile elsewhere."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable
from datetime import timedelta

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from ck_post_build.prebuild import Outcome, State


class _Counts:
    """Counts of outcomes, and what they say about the rest."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.states: Counter[State] = Counter()
        self.started = time.monotonic()

    @property
    def done(self) -> int:
        return self.states.total()

    def status(self) -> str:
        """Return counts, rate and time left. Only compiles count for the rate: what was there took no time."""
        text = f"{self.states[State.COMPILED]} compiled, {self.states[State.PRESENT]} there, {self.states[State.FAILED]} failed"
        worked = self.states[State.COMPILED] + self.states[State.FAILED]
        seconds = time.monotonic() - self.started
        if worked and seconds > 0:
            left = timedelta(seconds=round((self.total - self.done) * seconds / worked))
            text += f", {60 * worked / seconds:.1f} a minute, {left} left"
        return text


def follow(outcomes: Iterable[Outcome], total: int) -> list[Outcome]:
    """Show the outcomes on stderr as they come, and return them."""
    console = Console(stderr=True, highlight=False)
    counts = _Counts(total)
    found: list[Outcome] = []
    if not console.is_terminal:
        for outcome in outcomes:
            found.append(outcome)
            counts.states[outcome.state] += 1
            if outcome.state is not State.PRESENT:
                # Not wrapped: somebody may search these lines.
                console.print(f"[{counts.done}/{total}] {_line(outcome)}", markup=False, soft_wrap=True)
        return found
    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[status]}", markup=False))
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("", total=total, status="")
        for outcome in outcomes:
            found.append(outcome)
            counts.states[outcome.state] += 1
            progress.update(task, advance=1, status=counts.status())
            if outcome.state is State.FAILED:
                progress.console.print(_line(outcome), markup=False, soft_wrap=True)
    return found


def _line(outcome: Outcome) -> str:
    reason = f": {outcome.problem}" if outcome.problem else ""
    return f"{outcome.state.value} {outcome.target.label} in {outcome.seconds:.1f} s{reason}"


def summary(outcomes: Iterable[Outcome], seconds: float) -> str:
    """Return one line of counts, and then one for each failure, with its log."""
    found = list(outcomes)
    states = Counter(outcome.state for outcome in found)
    lines = [
        f"{len(found)} entries: {states[State.PRESENT]} were there, {states[State.COMPILED]} compiled, "
        f"{states[State.FAILED]} failed, in {seconds:.1f} s"
    ]
    for outcome in sorted(found, key=lambda outcome: outcome.target.label):
        if outcome.state is State.FAILED:
            log = f" (log: {outcome.log})" if outcome.log else ""
            lines.append(f"failed: {outcome.target.label}: {outcome.problem}{log}")
    return "\n".join(lines)
