"""Records the tool's present output on the fixtures as the expected one: ``python -m tests.golden.regenerate [FIXTURE…]``.

Read the resulting ``git diff`` before you commit it: it is what the change does to generated code.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from .fixtures import FIXTURES
from .golden import EXPECTED, actual, difference, expected


def main(names: list[str]) -> int:
    """Regenerate the named fixtures, or all of them."""
    unknown = set(names) - {fixture.name for fixture in FIXTURES}
    if unknown:
        print(f"no such fixture: {', '.join(sorted(unknown))}", file=sys.stderr)
        return 2
    for fixture in FIXTURES:
        if names and fixture.name not in names:
            continue
        with tempfile.TemporaryDirectory() as scratch:
            found = actual(fixture, Path(scratch))
        if not difference(expected(fixture), found):
            continue
        directory = fixture.directory / EXPECTED
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir()
        for name, content in found.items():
            (directory / name).write_bytes(content)
        print(f"{fixture.name}: {', '.join(sorted(found))}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
