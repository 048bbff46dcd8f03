"""Prints the fault matrix as a table:  python tests/runtime/fault_matrix.py [--fast] [WORD...]

Each case runs real processes against a toy lazy library. Exit status 1 if a case failed.
WORDs choose the cases whose names contain one of them; --fast leaves out the long ones.
"""

from __future__ import annotations

import sys
import tempfile
import traceback
from pathlib import Path

from fault_cases import CASES
from fault_lab import Built, Lab, Skip, fresh


def main(arguments: list[str]) -> int:
    fast = "--fast" in arguments
    words = [word for word in arguments if not word.startswith("--")]
    failed = 0
    with tempfile.TemporaryDirectory(prefix="ck-jit-faults-") as directory:
        built = Built.build(Path(directory) / "built")
        print(f"{'fault':<75} | {'result of the call':<75} | cache afterwards")
        print("-" * 75 + "-+-" + "-" * 75 + "-+-" + "-" * 17)
        for number, case in enumerate(CASES):
            if (fast and case.full) or (words and not any(word in case.fault for word in words)):
                continue
            try:
                outcome = case.run(Lab(built, fresh(Path(directory) / str(number))))
                print(f"{case.fault:<75} | {outcome.call:<75} | {outcome.cache}", flush=True)
            except Skip as reason:
                print(f"{case.fault:<75} | {f'skipped: {reason}':<75} |", flush=True)
            except Exception:
                failed += 1
                print(f"{case.fault:<75} | FAILED", flush=True)
                traceback.print_exc()
    print(f"{failed} failed" if failed else "all cases passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
