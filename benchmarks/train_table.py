"""All cases of train_step.py that this machine can run, and their table for docs/benchmarks.md: `make bench`.

    .venv/bin/python benchmarks/train_table.py [--cases a b] [options of train_step.py]

A case that fails has a row that says so, and the exit status is 1.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

PROGRAM = Path(__file__).resolve().parent / "train_step.py"
HEAD = (
    "| case | vlrl | other | times (CPU seconds) | peak memory, GB | ratio | floor reached | load; quiet |\n"
    "|---|---|---|---|---|---|---|---|"
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the cases one after the other and print the table."""
    parser = argparse.ArgumentParser(description="The table of train_step.py's cases.")
    parser.add_argument("--cases", nargs="+", help="default: a b c, and d on a machine with a GPU")
    args, rest = parser.parse_known_args(argv)
    import torch

    cases = args.cases or ["a", "b", "c", *(["d"] if torch.cuda.is_available() else [])]
    rows, failed, device = [], False, ""
    for case in cases:
        command = [sys.executable, str(PROGRAM), "--case", case, "--json", *rest]
        child = subprocess.run(command, stdout=subprocess.PIPE, text=True)
        if child.returncode:
            failed = True
            rows.append(f"| {case} | failed with status {child.returncode} | | | | | | |")
            continue
        result = json.loads(child.stdout.splitlines()[-1])
        device = result["device"]
        rows += rows_of(result)
    options = " ".join(rest)
    print(f"`python benchmarks/train_step.py --case … --json {options}`; {device}, {platform.machine()}\n")
    print("\n".join([HEAD, *rows]))
    return int(failed)


def rows_of(result: Mapping[str, Any]) -> list[str]:
    """The table's rows of one case: the whole step against TRL's, the trainer against rows."""
    found = []
    for key, names in (("whole", ("vlrl", "trl")), ("trainer", ("packed", "rows"))):
        if (one := result.get(key)) is None:
            continue
        ours, theirs = (one[name] for name in names)
        floor = one["floor"]["seconds"]
        quiet = "quiet" if one["quiet"] else "not quiet"
        cells = [
            f"{result['case']}, {'whole step' if key == 'whole' else 'trainer'}",
            f"{ours['median']:.3g} s",
            f"{names[1]} {theirs['median']:.3g} s",
            f"**{one['speedup']:.2f}** ({one['cpu_speedup']:.2f})",
            f"{ours['peak_bytes'] / 1e9:.2f}, {theirs['peak_bytes'] / 1e9:.2f}",
            f"{one['memory_ratio']:.2f}",
            f"{floor:.3g} s, {floor / ours['median']:.0%}",
            f"{result['load']:.1f}; {quiet}",
        ]
        found.append(f"| {' | '.join(cells)} |")
    return found


if __name__ == "__main__":
    sys.exit(main())
