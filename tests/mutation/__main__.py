"""``python -m tests.mutation``: changes real dispatchers, and counts which changes are reported or rewritten right."""

from __future__ import annotations

import sys
import tempfile
import time
from collections import Counter, defaultdict
from pathlib import Path

import click

from .mutants import mutants
from .trial import Outcome, attempt, read_source


@click.command()
@click.option(
    "--api", type=click.Path(path_type=Path, exists=True), required=True, help="The API file, its blobs beside it."
)
@click.option("--flags", required=True, help="Compiler flags, as for ck-post-build.")
@click.option("--each", default=2, show_default=True, help="Mutants of every kind.")
@click.option("--seed", default=1, show_default=True)
@click.option("--kind", "only", help="Part of the name of the kinds to try.")
def main(api: Path, flags: str, each: int, seed: int, only: str | None) -> None:
    """Print a table of kinds and outcomes. Exit status 1: some mutant is silently wrong, or an error names no file."""
    started = time.monotonic()
    counts: dict[str, Counter[Outcome]] = defaultdict(Counter)
    with tempfile.TemporaryDirectory(prefix="ck-post-build-mutation-") as scratch:
        for mutant in mutants(read_source(api), seed, each):
            if only is not None and only not in mutant.kind:
                continue
            trial = attempt(mutant, api.name, flags, Path(scratch) / "mutant")
            counts[mutant.kind][trial.outcome] += 1
            said = trial.message.splitlines()[0][:160] if trial.message else ""
            click.echo(f"{mutant.kind} | {mutant.what} | {trial.outcome.value} | {said}", err=True)
            if trial.outcome in (Outcome.WRONG, Outcome.LATE):
                click.echo(trial.message, err=True)
    total: Counter[Outcome] = sum(counts.values(), Counter())
    click.echo(f"| {api.name} | " + " | ".join(outcome.value for outcome in Outcome) + " |")
    click.echo("| --- |" + " --- |" * len(Outcome))
    for name, row in [*counts.items(), ("all", total)]:
        click.echo(f"| {name} | " + " | ".join(str(row[outcome]) for outcome in Outcome) + " |")
    click.echo(f"{time.monotonic() - started:.0f} s")
    sys.exit(1 if total[Outcome.WRONG] else 0)


if __name__ == "__main__":
    main()
