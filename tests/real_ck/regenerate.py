"""Records the facts of the tool on real CK: ``python -m tests.real_ck.regenerate [NAME…]``. Takes minutes without names."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from .ck import ALL, FACTS, facts, generate, rewrite


def main(names: list[str]) -> int:
    """Record the named ones, or all."""
    recorded = json.loads(FACTS.read_text()) if FACTS.exists() else {}
    for generated in ALL:
        if names and generated.name not in names:
            continue
        with tempfile.TemporaryDirectory() as scratch:
            source, output, report = (Path(scratch) / name for name in ("generated", "out", "report.json"))
            rewrite([generate(generated, source)], [source], output, "--report", report)
            recorded[generated.name] = facts(output, report)
        print(generated.name, recorded[generated.name])
    FACTS.write_text(json.dumps(recorded, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
