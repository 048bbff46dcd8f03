"""What a refusal of the command must look like."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from golden.fixtures import FIXTURES
from golden.golden import arguments, command, copy_inputs, environment

FWD = next(fixture for fixture in FIXTURES if fixture.name == "fwd")
SPLITKV = next(fixture for fixture in FIXTURES if fixture.name == "fwd_splitkv")
# What a run before left behind; a refused run must not touch it.
OLD = {"fmha_fwd_api.cpp": b"old api", "ck_jit_manifest_embedded.h": b"old manifest"}


class Case:
    """A copy of a fixture that a test spoils, and an output directory with the files of an earlier run."""

    def __init__(self, scratch: Path, fixture=FWD) -> None:
        self.fixture = fixture
        self.source = copy_inputs(fixture, scratch / "in")
        self.output = scratch / "out"
        self.output.mkdir()
        for name, content in OLD.items():
            (self.output / name).write_bytes(content)
        self.api = self.source / fixture.apis[0]
        self.blobs = self.source / fixture.blob_dirs[0]

    def blob(self, number: int = 0) -> Path:
        return sorted(self.blobs.iterdir())[number]

    def edit(self, path: Path, old: str, new: str) -> int:
        """Replace `old` in a file and return the line that it stood on."""
        text = path.read_text()
        assert text.count(old) >= 1, f"{old!r} is not in {path}"
        path.write_text(text.replace(old, new, 1))
        return text[: text.index(old)].count("\n") + 1

    def words(self) -> list[str | Path]:
        return arguments(self.fixture, self.source)

    def refused(self, *fragments: str, words=None, before=(), steps=("rewrite",), **extra: str) -> str:
        """Run the command, check that it refuses as it should, and return its message.

        Args:
            fragments: regular expressions that the message contains, in this order.
            words: the arguments; by default those that would be right for the fixture.
            before: words of a program that starts the command.
            steps: the name of the command and its own options.
            extra: environment.
        """
        tree = snapshot(self.output)
        line = [*map(str, before), *command(*steps, *(self.words() if words is None else words), "-o", self.output)]
        done = run_line(line, **extra)
        check(done, fragments)
        assert snapshot(self.output) == tree, "the output directory is not as it was"
        return done.stderr


def run_line(line: list[str], **extra: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        line,
        env=environment(**extra),
        capture_output=True,
        text=True,
        errors="surrogateescape",
        timeout=120,
        check=False,
    )


def check(done: subprocess.CompletedProcess[str], fragments: tuple[str, ...]) -> None:
    """Check that a finished command refused: status 1, one message on stderr, nothing else."""
    assert done.returncode == 1, (done.returncode, done.stdout, done.stderr)
    assert done.stdout == ""
    assert done.stderr.startswith("ck-post-build: "), done.stderr
    assert done.stderr.endswith("\n")
    assert "Traceback" not in done.stderr
    if "the compiler's output" not in done.stderr:
        assert done.stderr.count("\n") == 1, f"more than one message:\n{done.stderr}"
    pattern = ".*".join(fragments)
    assert re.search(pattern, done.stderr, re.DOTALL), f"expected {pattern!r} in\n{done.stderr}"


def snapshot(directory: Path) -> dict[str, bytes | None] | None:
    """Return the content of every file below `directory`; None when it does not exist."""
    if not directory.is_dir():
        return None
    return {str(p.relative_to(directory)): p.read_bytes() if p.is_file() else None for p in directory.rglob("*")}
