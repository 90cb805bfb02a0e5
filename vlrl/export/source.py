"""Which weights of a run are exported: those of its end, of a checkpoint, or the best ones that are kept."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from vlrl.errors import CheckpointError, ConfigError
from vlrl.experiments.registry import read_run
from vlrl.run.checkpoint import checkpoints
from vlrl.run.manifest import MANIFEST_FILE, damage
from vlrl.tracking.heldout import read_heldout
from vlrl.tracking.selection import BEST_LINK

BEST = "best"
GREEDY = "greedy"


@dataclass(frozen=True, slots=True)
class ExportSource:
    """A model of a run.

    Attributes:
        folder: in Hugging Face format.
        step: weight updates that it has had.
    """

    folder: Path
    step: int


def find_weights(run_dir: Path, checkpoint: str | None = None) -> ExportSource:
    """The model that is meant.

    Args:
        run_dir: the run's folder.
        checkpoint: a step; "best", which is that of eval.keep_best, or without it the kept one with the
            highest greedy held-out accuracy; None is RUN/model, or the last checkpoint of a run that is not
            finished.

    Raises:
        ConfigError: if the run has no such model.
        CheckpointError: if the checkpoint's files are not what was written.
    """
    known = kept_weights(run_dir)
    if not known:
        raise ConfigError(f"{run_dir} has no model and no checkpoint; train it on, or give another run")
    if checkpoint is None:
        chosen = max(known)
    elif checkpoint == BEST:
        chosen = _best(run_dir, known)
    elif checkpoint.isdecimal() and int(checkpoint) in known:
        chosen = int(checkpoint)
    else:
        raise ConfigError(
            f"--checkpoint {checkpoint}: {run_dir} has the steps {', '.join(map(str, sorted(known)))}; give "
            f"one of them, or {BEST}"
        )
    folder = known[chosen]
    whole = folder.parent
    if (whole / MANIFEST_FILE).is_file() and (wrong := damage(whole)):
        raise CheckpointError(f"{whole} is damaged: {wrong}; give another --checkpoint")
    return ExportSource(folder, chosen)


def kept_weights(run_dir: Path) -> dict[int, Path]:
    """Folders of models by the number of weight updates; the run's end goes before its last checkpoint."""
    found = {int(path.name.removeprefix("step_")): path / "model" for path in checkpoints(run_dir)}
    found = {step: folder for step, folder in found.items() if (folder / "config.json").is_file()}
    final = run_dir / "model"
    if (final / "config.json").is_file():
        record = read_run(run_dir)
        found[int(record.summary.get("num_steps", record.planned_steps or 0))] = final
    return found


def accuracies(run_dir: Path) -> dict[int, dict[str, tuple[float, int]]]:
    """Held-out accuracy by step and way of generating: (mean of what could be scored, number of these)."""
    values: dict[tuple[int, str], list[float]] = {}
    for line in read_heldout(run_dir):
        if (accuracy := line.get("accuracy")) is not None:
            values.setdefault((int(line["step"]), str(line["how"])), []).append(float(accuracy))
    found: dict[int, dict[str, tuple[float, int]]] = {}
    for (step, how), scored in sorted(values.items()):
        found.setdefault(step, {})[how] = (statistics.fmean(scored), len(scored))
    return found


def _best(run_dir: Path, known: Mapping[int, Path]) -> int:
    if (link := run_dir / BEST_LINK).is_dir():
        return int(link.resolve().parent.name.removeprefix("step_"))
    evaluated = accuracies(run_dir)
    figures = {step: evaluated[step][GREEDY][0] for step in known if GREEDY in evaluated.get(step, {})}
    if not figures:
        raise ConfigError(
            f"--checkpoint {BEST}: {run_dir} has no held-out accuracy of a step whose weights are kept "
            f"(evaluated: {sorted(evaluated) or 'none'}, kept: {sorted(known)}); set eval.keep_best"
        )
    return max(figures, key=lambda step: (figures[step], step))
