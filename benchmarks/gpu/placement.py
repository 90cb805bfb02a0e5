"""Stage 7: eight GPUs: ranks and engines on every one of them, engines whole and each split over two.

A run on one GPU and runs on eight start from the same weights, so their first batches are the same tokens
and their first losses must agree. While a run goes on, the memory in use is read from every GPU.
"""

from __future__ import annotations

import subprocess
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import stage
from short_run import build_model, config_of, short_run

LOSS_TOLERANCE = 1e-3
MIN_USED_MIB = 1024
"""Of a GPU that has a rank and an engine; an idle one has less."""
POLL_S = 1.0


@dataclass(frozen=True)
class Size:
    """GPUs (processes on a CPU), steps of a run, and the engines' split."""

    count: int
    num_steps: int
    tensor_parallel: tuple[int, ...]


FULL = Size(8, 3, (1, 2))
TINY = Size(2, 1, (1,))


def measure(options: stage.Options) -> stage.Verdict:
    size = TINY if options.tiny else FULL
    stage.require_gpus(size.count, options)
    stage.require_packages("ray", "vllm", "deepspeed")
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        model = build_model(Path(folder) / "model")
        figures["one"] = run(model, Path(folder), "one", 1, 1, size)
        for parallel in size.tensor_parallel:
            name = f"{size.count} ranks, engines of {parallel}"
            figures[name] = run(model, Path(folder), f"tp{parallel}", size.count, parallel, size)
    faults = [
        f"{name}: {fault}"
        for name, found in figures.items()
        if name != "one"
        for fault in faults_of(found, figures["one"], size.count if options.device == "cuda" else 0)
    ]
    words = f"{size.count} ranks and engines compute the losses of one: " + ", ".join(
        f"{found['losses'][0]:.6f}" for found in figures.values()
    )
    return stage.Verdict.of(words, faults, figures)


def run(model: Path, folder: Path, name: str, ranks: int, parallel: int, size: Size) -> dict[str, Any]:
    """One run's losses and times, and the most memory that was used on each GPU."""
    overrides = (
        f"num_steps={size.num_steps}",
        f"trainer.num_ranks={ranks}",
        f"generator.num_replicas={max(1, ranks // parallel)}",
        f"generator.tensor_parallel_size={parallel}",
        "rollout.prompts_per_step=8",
        "rollout.group_size=4",
    )
    with GpuMemory() as memory:
        summary, steps = short_run(config_of(model, folder, name, *overrides))
    return {
        "losses": [step["policy/loss"] for step in steps],
        "parity": [step["parity/max_abs_logprob_diff"] for step in steps],
        "used_mib": memory.most,
        "seconds_by_phase": summary["seconds_by_phase"],
    }


class GpuMemory:
    """The most memory in use on each GPU while a block runs, in MiB; nothing without nvidia-smi."""

    def __init__(self) -> None:
        self.most: list[int] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._poll)

    def __enter__(self) -> GpuMemory:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _poll(self) -> None:
        command = ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"]
        while not self._over.is_set():
            try:
                used = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
            except (OSError, subprocess.CalledProcessError):
                return
            now = [int(value) for value in used]
            self.most = [max(pair) for pair in zip(now, self.most or now, strict=True)]
            self._over.wait(POLL_S)


def faults_of(found: dict[str, Any], one: dict[str, Any], num_gpus: int) -> list[str]:
    """What is wrong with a run on several."""
    faults = []
    difference = abs(found["losses"][0] - one["losses"][0])
    if not difference <= LOSS_TOLERANCE:  # nan too
        faults.append(f"its first loss is {difference:.1e} from that of one")
    idle = [number for number, mib in enumerate(found["used_mib"][:num_gpus]) if mib < MIN_USED_MIB]
    if len(found["used_mib"]) < num_gpus or idle:
        faults.append(f"GPUs {idle} were idle: {found['used_mib']} MiB used")
    return faults


if __name__ == "__main__":
    stage.run(measure)
