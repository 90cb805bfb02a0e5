"""Where a run begins, under which configuration each step was made, and what changes when it is resumed.

RUN/config.yaml                 the one in force
RUN/configs/step_000000.yaml    that of the first steps
RUN/configs/step_000120.yaml    a changed one, of step 120 (counted from 0) and those after it
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import yaml

from vlrl.config import Config
from vlrl.config.paths import absolute
from vlrl.errors import ConfigError
from vlrl.run.checkpoint import RunState, TellFn, checkpoints, latest_checkpoint, require_same_run
from vlrl.run.remote import RemoteCheckpoints


@dataclass(frozen=True, slots=True)
class Beginning:
    """The checkpoint to go on from, if any, and how the config differs from that of its steps."""

    checkpoint: tuple[Path, RunState] | None = None
    changes: Sequence[Change] = ()

    @property
    def step(self) -> int:
        """The first one to do."""
        return self.checkpoint[1].next_step if self.checkpoint else 0


def find_beginning(config: Config, *, resume: bool, tell: TellFn) -> Beginning:
    """Where a run begins.

    Args:
        config: of the run.
        resume: whether it goes on.
        tell: called with an event's name and a sentence about damaged checkpoints or a changed config.

    Raises:
        ConfigError: for a new run in the folder of another; for a resumed one that has no checkpoint, or
            whose config cannot go on with it.
        ResourceError: if checkpoint.upload_to cannot be read.
        CheckpointError: if every checkpoint is damaged.
    """
    run_dir, remote = config.run_dir, RemoteCheckpoints.of(config)
    if not resume:
        found_in = [run_dir] if checkpoints(run_dir) else [remote.url] if remote and remote.steps() else []
        for place in found_in:
            raise ConfigError(
                f"{place} holds an earlier run; continue with --resume, give another run.name, or remove it"
            )
        return Beginning()
    if remote is not None and (fetched := remote.fetch_newer(tell)) is not None:
        _restore_config(run_dir, fetched)
    changes = changes_since(run_dir, config)
    require_resumable(changes)
    found = latest_checkpoint(run_dir, tell)
    require_same_run(found[1], config)
    if changes:
        tell("config_changed", described(changes, found[1].next_step))
    return Beginning(found, changes)


CONFIG_FILE = "config.yaml"
HISTORY_FOLDER = "configs"
ABSENT = "absent"

FIXED: Mapping[str, str] = {
    "model.path": "the state in the checkpoint is of that model; if its folder has moved, make a link there",
    "model.dtype": "the optimizer's state is kept otherwise",
    "model.freeze": "other parameters would be trained than the state in the checkpoint is of",
    "lora": "the checkpoint has the adapters of the one shape alone",
    "lora.rank": "the checkpoint has adapters of that rank",
    "lora.alpha": "the same adapters would count differently",
    "lora.rslora": "the same adapters would count differently",
    "lora.base": "the same adapters would be put on another model",
    "lora.dora": "the checkpoint has magnitudes, or has none",
    "lora.targets": "the checkpoint has the adapters of those layers alone",
    "policies": "the checkpoint has the adapters of those policies alone",
    "optim.name": "the optimizer's state is kept otherwise",
    "optim.state": "the optimizer's state is kept otherwise",
    "trainer.offload_dir": "states on a disk and states in memory are written differently",
    "run.seed": "the order of the samples follows from it",
}
"""What cannot change within a run, and why; start a run of its own for it."""

HARMLESS = (
    *("run.dir", "run.name", "num_steps", "eval.*", "checkpoint.*", "logging.*", "ray.*", "profile.*"),
    *("data.eval.*", "data.num_workers", "data.prefetch_steps", "media.cache_*", "scoring.num_workers"),
    *("generator.cpus", "generator.gpus", "generator.max_restarts", "trainer.max_restarts"),
    *("trainer.cpus_per_rank", "trainer.gpus_per_rank", "trainer.master_port", "trainer.timeout_s"),
    "trainer.num_ranks",  # sums of gradients are rounded otherwise
    *("vision_cache.*", "trainer.logits_chunk_mib"),
)
"""What changes nothing that is learnt."""


@dataclass(frozen=True, slots=True)
class Change:
    """A value that is another one than before; ABSENT stands for a key that one of the two has not."""

    key: str
    before: Any
    now: Any

    def __str__(self) -> str:
        return f"{self.key}: {_said(self.before)} → {_said(self.now)}"


def changes_since(run_dir: Path, config: Config) -> list[Change]:
    """How a config differs from the one that a run was last under; none if that is not known any more."""
    try:
        before = yaml.safe_load((run_dir / CONFIG_FILE).read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError):
        return []
    if not isinstance(before, dict):
        return []
    found = differences(before, config.model_dump(mode="json"))
    return [change for change in found if not _moved_with_the_run(change, before, config)]


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[Change]:
    """Every leaf whose value changed, by its dotted key; items of lists by their number."""
    old, new = dict(_leaves(before)), dict(_leaves(now))
    keys = [*old, *(key for key in new if key not in old)]
    return [
        Change(key, old.get(key, ABSENT), new.get(key, ABSENT))
        for key in keys
        if not _same(old.get(key, ABSENT), new.get(key, ABSENT))
    ]


def require_resumable(changes: Sequence[Change]) -> None:
    """Raise ConfigError if something changed with which the checkpoint cannot be loaded or gone on with."""
    lines = [f"{change}: {FIXED[_fixed_by(change.key)]}" for change in changes if _is_fixed(change)]
    if lines:
        raise ConfigError(
            "--resume: the checkpoint cannot be continued with this config:\n  "
            + "\n  ".join(lines)
            + "\ngive what it was written with, or another run.name and no --resume"
        )


def described(changes: Sequence[Change], first_step: int) -> str:
    """Text for people, in several lines: what changes the experiment from the step after `first_step` on."""
    harmless = [c for c in changes if any(fnmatch(c.key, pattern) for pattern in HARMLESS)]
    others = [change for change in changes if change not in harmless]
    text = ""
    if others:
        text += f"--resume: the experiment is another one from step {first_step + 1} on:"
        text += "".join(f"\n  {change}" for change in others)
    if harmless:
        text += "\n" if text else "--resume: "
        text += f"changed, without effect on what is learnt: {'; '.join(map(str, harmless))}"
    return text


def config_text(config: Config) -> str:
    """A config as it is kept, in YAML."""
    return yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False, allow_unicode=True)


def _restore_config(run_dir: Path, checkpoint: Path) -> None:
    """Bring the config of a fetched checkpoint's steps back to where there is none."""
    kept, place = checkpoint / CONFIG_FILE, run_dir / CONFIG_FILE
    if kept.is_file() and not place.exists():
        shutil.copyfile(kept, place)


def write_config(run_dir: Path, config: Config, first_step: int) -> None:
    """Write the config in force; one that is not that of the steps before also under its first step."""
    text = config_text(config)
    folder = run_dir / HISTORY_FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    for kept in folder.glob("step_*.yaml"):  # steps that are redone, under the config that is in force now
        if kept.stem > _name(first_step):
            kept.unlink()
    last = max(folder.glob("step_*.yaml"), default=None)
    if last is None or last.read_text(encoding="utf-8") != text:
        (folder / f"{_name(first_step)}.yaml").write_text(text, encoding="utf-8")
    (run_dir / CONFIG_FILE).write_text(text, encoding="utf-8")


def _name(step: int) -> str:
    return f"step_{step:06d}"


def _leaves(tree: Any, prefix: str = "") -> list[tuple[str, Any]]:
    items: Any = ()
    if isinstance(tree, Mapping):
        items = tree.items()
    elif isinstance(tree, list) and any(isinstance(item, Mapping) for item in tree):
        items = enumerate(tree)
    if not items:
        return [(prefix, tree)]
    return [
        leaf for key, value in items for leaf in _leaves(value, f"{prefix}.{key}" if prefix else str(key))
    ]


def _same(before: Any, now: Any) -> bool:
    """Whether two values are equal; a relative path of an older version's config counts as absolute."""
    if isinstance(before, str) and isinstance(now, str) and now.startswith("/"):
        return str(absolute(Path(before))) == now
    return bool(before == now)


def _moved_with_the_run(change: Change, before: Mapping[str, Any], config: Config) -> bool:
    """Whether the model lies where it lay as seen from the run's folder, because both have moved."""
    then = str(before.get("run", {}).get("dir", ""))
    if change.key != "model.path" or not all(path.startswith("/") for path in (then, change.before)):
        return False
    return os.path.relpath(change.before, then) == os.path.relpath(config.model.path, config.run.dir)


def _is_fixed(change: Change) -> bool:
    sides = (change.before, change.now)
    if change.key == "trainer.offload_dir":
        return None in sides  # nothing in the folder itself outlives a run
    if change.key.startswith("lora."):
        return change.key in FIXED and ABSENT not in sides  # adapters or none: the key `lora` says
    return _fixed_by(change.key) in FIXED


def _fixed_by(key: str) -> str:
    """The key of FIXED that a key falls under: all of policies but how often a copy is taken."""
    return "policies" if key.startswith("policies") and not key.endswith(".every") else key


def _said(value: Any) -> str:
    text = value if value == ABSENT else repr(value) if isinstance(value, str) else str(value)
    text = "null" if value is None else text
    return text if len(text) <= 100 else f"{text[:80]} … {text[-15:]}"
