"""What keeping the rollouts adds to a step's time, in one run that keeps those of every fourth step.

    python benchmarks/rollouts_run.py configs/quickstart.yaml model.path=runs/quickstart-sft/model

The rollouts of step s are written at its end and while step s + 1 is made. So of every four steps two carry
the writing and two do not: a pair that does is compared with the mean of the pairs before and after it, which
other jobs on the machine and the growth of completions change alike. The cost of a step whose rollouts are
kept is the difference, as a share of a step; the interval is of 95 %, by the bootstrap over pairs.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from vlrl.process.json_stdout import parse_with_json, print_json
from vlrl.tracking.sinks import METRICS_FILE, read_metrics

FIRST = 4
"""The first step of the first pair: those before it fill caches."""


def main() -> None:
    """Train, and print the comparison."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("config", type=Path)
    parser.add_argument("keys", nargs="*", help="options of the config, KEY=VALUE")
    args = parse_with_json(parser)
    with tempfile.TemporaryDirectory() as folder:
        own = [f"run.dir={folder}", "run.name=kept", "logging.rollouts.every=4", "checkpoint.every=0"]
        command = [Path(sys.executable).with_name("vlrl"), "train", args.config, *args.keys, *own]
        subprocess.run(list(map(str, command)), check=True, stdout=sys.stderr)
        steps = read_metrics(Path(folder, "kept", METRICS_FILE))
    found = compared([step["time_s/step"] or 0.0 for step in steps if "time_s/step" in step])
    if args.json:
        print_json(found)
        return
    print(
        f"{found['num_pairs']} pairs: a step takes {found['step_s']:.3f} s, keeping its rollouts adds "
        f"{found['added_s'] * 1000:+.1f} ms ({found['added_share']:+.2%}); "
        f"95 % of {found['low_share']:+.2%} to {found['high_share']:+.2%}"
    )


def compared(seconds: list[float]) -> dict[str, float]:
    """Pairs of steps that carry the writing against their neighbours: medians in seconds, and of a step."""
    pairs = [seconds[at] + seconds[at + 1] for at in range(FIRST, len(seconds) - 1, 2)]
    added = np.array([pairs[n] - (pairs[n - 1] + pairs[n + 1]) / 2 for n in range(2, len(pairs) - 1, 2)])
    step = statistics.median(pairs[1::2]) / 2
    samples = np.random.default_rng(0).integers(0, len(added), (2000, len(added)))
    low, high = np.percentile(np.median(added[samples], axis=1), [2.5, 97.5])
    return {
        "num_pairs": len(added),
        "step_s": step,
        "added_s": float(np.median(added)),
        "added_share": float(np.median(added)) / step,
        "low_share": float(low) / step,
        "high_share": float(high) / step,
    }


if __name__ == "__main__":
    main()
