"""How long a save stops the run: seconds until a checkpoint is whole, and of the digests that come after it.

    python benchmarks/checkpoint.py --gib 4 --json

Files of random bytes stand for model and states. `save_s` is what the next step waits for: writing, syncing
to the disk, sizes, the rename. `digests_s` is what a thread does meanwhile; before, the step waited for it.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from pathlib import Path

from vlrl.process.json_stdout import parse_with_json, print_json
from vlrl.run.checkpoint import RunState, save_checkpoint
from vlrl.run.manifest import add_digests

NUM_FILES = 4
CHUNK_BYTES = 2**24


def write(folder: Path, num_bytes: int) -> dict[str, int]:
    """Files of equal size, half of them the model's."""
    chunk = os.urandom(CHUNK_BYTES)
    for number in range(NUM_FILES):
        file = folder / ("model" if number < NUM_FILES // 2 else "state") / f"{number}.bin"
        file.parent.mkdir(exist_ok=True)
        with file.open("wb") as opened:
            for _ in range(max(1, num_bytes // NUM_FILES // CHUNK_BYTES)):
                opened.write(chunk)
    return {}


def measure(folder: Path, gib: float, rounds: int) -> dict[str, float]:
    """Medians over the rounds, in seconds."""
    saves, digests = list[float](), list[float]()
    for number in range(rounds):
        begin = time.perf_counter()
        made = save_checkpoint(
            folder, RunState(number, 0, 1), lambda aside: write(aside, int(gib * 2**30)), keep=1
        )
        saves.append(time.perf_counter() - begin)
        begin = time.perf_counter()
        add_digests(made)
        digests.append(time.perf_counter() - begin)
    return {"gib": gib, "save_s": statistics.median(saves), "digests_s": statistics.median(digests)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--gib", type=float, default=1.0, help="size of the checkpoint")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="on the disk to measure; by default a temporary one")
    arguments = parse_with_json(parser)
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        found = measure(Path(folder), arguments.gib, arguments.rounds)
    if arguments.json:
        print_json(found)
    else:
        print(
            f"{found['gib']:g} GiB: the run waits {found['save_s']:.2f} s for the save; digests take "
            f"{found['digests_s']:.2f} s in the background"
        )


if __name__ == "__main__":
    main()
