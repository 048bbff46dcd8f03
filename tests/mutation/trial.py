"""Tries one mutant: is it reported, or rewritten to what its own original does?"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from ck_post_build.build_info import read_build_info
from ck_post_build.errors import CkPostBuildError
from tests.oracle.run import Oracle

from .mutants import Mutant, Source


class Outcome(Enum):
    """What became of a mutant."""

    REPORTED = "reported"
    RIGHT = "rewritten right"
    NO_CPP = "no C++, and not reported"
    LATE = "does not build"
    WRONG = "wrong"


@dataclass
class Trial:
    """A mutant's outcome, and what was said."""

    mutant: Mutant
    outcome: Outcome
    message: str


def read_source(api: Path) -> Source:
    """Return the API file with the blobs beside it."""
    blobs = {path.name: path.read_text() for path in sorted(api.parent.glob("*.cpp")) if path != api}
    return Source(api.read_text(), blobs)


def attempt(mutant: Mutant, name: str, flags: str, directory: Path, inputs: int = 20_000) -> Trial:
    """Write the mutant's files to `directory`, rewrite them, and compare with their original.

    Args:
        name: of the API file.
        flags: compiler flags, as for the oracle.
        inputs: how many random ones, beside those aimed at each site.
    """
    source = directory / "source"
    shutil.rmtree(directory, ignore_errors=True)
    source.mkdir(parents=True)
    (source / name).write_text(mutant.source.api)
    for blob, text in mutant.source.blobs.items():
        (source / blob).write_text(text)
    oracle = Oracle(source / name, source, flags, directory / "oracle")
    try:
        oracle.build(seed=1)
        wrong_symbols = [blob for blob in mutant.changed if not _symbols_are_right(blob, source, flags, oracle.lazy)]
        if wrong_symbols:
            return Trial(mutant, Outcome.WRONG, f"the symbols of {wrong_symbols[0]} are not the compiler's")
        result = oracle.drive(inputs, 1, ("gfx942", "gfx950"))
    except CkPostBuildError as error:
        named = error.file is not None and Path(error.file).exists()
        return Trial(mutant, Outcome.REPORTED if named else Outcome.WRONG, str(error))
    except SystemExit as error:
        return Trial(mutant, Outcome.NO_CPP if "original.o" in str(error)[:4000] else Outcome.LATE, str(error)[-500:])
    if result.different or result.differences:
        return Trial(mutant, Outcome.WRONG, "\n".join(result.differences[:3]))
    return Trial(mutant, Outcome.RIGHT, "")


def _symbols_are_right(blob: str, source: Path, flags: str, lazy: Path) -> bool:
    """Compile the blob's host half, and compare the kernels that it defines with those that were predicted."""
    output = source.parent / "blob.o"
    hipcc = Path(os.environ["ROCM_PATH"]) / "bin/hipcc"
    command = [
        hipcc,
        *shlex.split(flags),
        "-x",
        "hip",
        "--cuda-host-only",
        "-O0",
        "-w",
        "-c",
        source / blob,
        "-o",
        output,
    ]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        return True  # no C++: the compiler says so when the blob is first called
    listed = subprocess.run(["nm", "--defined-only", output], capture_output=True, text=True, check=True).stdout
    symbols = {line.split()[2] for line in listed.splitlines() if line.split()[1] == "T"}
    predicted = next((b.symbols for b in read_build_info(lazy).blobs if b.name == blob), [])
    # A specialisation of a function template of CK's that the blob itself writes: neither weak nor in a namespace.
    kernels = {symbol for symbol in symbols if re.match(r"_Z\d+fmha_\w+?_I", symbol)}
    return bool(predicted) and set(predicted) == kernels
