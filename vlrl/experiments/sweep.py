"""One config with several values of some options and several seeds: a run each, in processes of their own."""

from __future__ import annotations

import itertools
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import yaml

from vlrl.config import Config, load_config
from vlrl.config.strict_yaml import load_yaml
from vlrl.errors import ConfigError, Interrupted
from vlrl.machine.nvidia import has_gpu
from vlrl.run.checkpoint import checkpoints
from vlrl.run.summary import SUMMARY_FILE

SWEEP_FILE = "sweep.json"
"""The plan, in the sweep's folder."""
Command = Literal["train", "sft", "dpo", "raft"]
Outcome = Literal["done", "done before", "failed"]
POLL_S = 0.2
STOP_S = 120.0
"""Time that stopped runs have to save before they are killed."""
TellFn = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class SweepRun:
    """One run of a sweep.

    Attributes:
        name: of the run, and of its folder in the sweep's.
        values: of the options that vary.
        seed: run.seed.
    """

    name: str
    values: Mapping[str, Any]
    seed: int


@dataclass(frozen=True, slots=True)
class Sweep:
    """A plan.

    Attributes:
        config: the file.
        overrides: KEY=VALUE that hold for all runs.
        vary: values of each option that varies.
        seeds: of each combination.
        folder: where the runs' folders are.
        command: that each run is one of.
    """

    config: Path
    overrides: Sequence[str]
    vary: Mapping[str, Sequence[Any]]
    seeds: Sequence[int]
    folder: Path
    command: Command = "train"
    runs: Sequence[SweepRun] = field(init=False)

    def __post_init__(self) -> None:
        combinations = [
            dict(zip(self.vary, values, strict=True)) for values in itertools.product(*self.vary.values())
        ]
        runs = [
            SweepRun(run_name(values, seed), values, seed) for values in combinations for seed in self.seeds
        ]
        object.__setattr__(self, "runs", runs)

    def arguments(self, run: SweepRun) -> list[str]:
        """KEY=VALUE of a run."""
        chosen = {
            **run.values,
            "run.seed": run.seed,
            "run.name": run.name,
            "run.dir": str(self.folder.absolute()),
        }
        return [*self.overrides, *(f"{key}={_as_yaml(value)}" for key, value in chosen.items())]

    def loaded(self, run: SweepRun) -> Config:
        """A run's config.

        Raises:
            ConfigError: if it cannot be one.
        """
        return load_config(self.config, self.arguments(run))


def parse_vary(given: Sequence[str]) -> dict[str, list[Any]]:
    """Options and their values, of KEY=A,B,C each.

    Raises:
        ConfigError: for what is not that, or an option that is there twice.
    """
    found: dict[str, list[Any]] = {}
    for each in given:
        key, equals, text = each.partition("=")
        try:
            values = load_yaml(f"[{text}]") if equals and key else None
        except yaml.YAMLError as error:
            raise ConfigError(f"--vary {each!r}: the values are not YAML: {error}") from error
        if not isinstance(values, list) or not values:
            raise ConfigError(f"--vary {each!r} must be KEY=VALUE,VALUE, for instance optim.lr=1e-6,3e-6")
        if key in found or key in ("run.seed", "run.name", "run.dir"):
            raise ConfigError(f"--vary {each!r}: {key} is given twice, or by the sweep itself (--seeds)")
        found[key] = values
    return found


def run_name(values: Mapping[str, Any], seed: int) -> str:
    """A name that is a folder's: the last parts of the keys with the values, and the seed."""
    parts = [f"{key.rsplit('.', 1)[-1]}_{_as_yaml(value)}" for key, value in values.items()]
    return re.sub(r"[^A-Za-z0-9._-]+", "_", "-".join([*parts, f"seed_{seed}"]))


def require_runnable(sweep: Sweep, num_at_once: int) -> None:
    """Check every run's config before the first one starts.

    Raises:
        ConfigError: for a config that cannot be one, names that are alike, or more runs at once than there
            are machines.
    """
    names = [run.name for run in sweep.runs]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ConfigError(
            f"two runs would be named {twice!r}: letters and digits do not tell their values apart"
        )
    configs = [sweep.loaded(run) for run in sweep.runs]
    if num_at_once > 1 and has_gpu() and any(config.ray.address is None for config in configs):
        raise ConfigError(
            f"--at-once {num_at_once}: each run would take this machine's GPUs for itself; start Ray and set "
            "ray.address=auto, so that they share its GPUs, or leave --at-once out"
        )


def write_plan(sweep: Sweep) -> None:
    """Write the plan to the sweep's folder."""
    sweep.folder.mkdir(parents=True, exist_ok=True)
    plan = {**asdict(sweep), "config": str(sweep.config.absolute()), "folder": str(sweep.folder.absolute())}
    aside = sweep.folder / f"{SWEEP_FILE}.part"
    aside.write_text(json.dumps(plan, indent=1) + "\n", encoding="utf-8")
    os.replace(aside, sweep.folder / SWEEP_FILE)


def do_sweep(sweep: Sweep, num_at_once: int, tell: TellFn) -> dict[str, Outcome]:
    """Do the runs that are not done; those that were stopped go on from their checkpoints.

    Args:
        sweep: the plan, which is checked and written first.
        num_at_once: runs beside each other.
        tell: called with a sentence when a run begins and ends.

    Returns:
        The outcome of each run by name; a failed one has its output in FOLDER/NAME.log.

    Raises:
        ConfigError: see `require_runnable`.
        Interrupted: once the runs that were under way have saved.
    """
    require_runnable(sweep, num_at_once)
    write_plan(sweep)
    outcomes: dict[str, Outcome] = {}
    waiting, running = list(sweep.runs), dict[str, subprocess.Popen[bytes]]()
    try:
        while waiting or running:
            while waiting and len(running) < num_at_once:
                run = waiting.pop(0)
                if (sweep.folder / run.name / SUMMARY_FILE).is_file():
                    outcomes[run.name] = "done before"
                    continue
                tell(f"{run.name} begins ({len(sweep.runs) - len(waiting)} of {len(sweep.runs)})")
                running[run.name] = start(sweep, run)
            for name, process in list(running.items()):
                if process.poll() is not None:
                    del running[name]
                    outcomes[name] = "done" if (sweep.folder / name / SUMMARY_FILE).is_file() else "failed"
                    tell(f"{name}: {outcomes[name]}, see {sweep.folder / name}.log")
            time.sleep(POLL_S)
    except KeyboardInterrupt as error:
        tell(f"stopping {len(running)} runs, which save first")
        stop(running.values())
        raise Interrupted("the sweep was stopped; the same command goes on with it") from error
    return outcomes


def start(sweep: Sweep, run: SweepRun) -> subprocess.Popen[bytes]:
    """A run's process, in a session of its own: Ctrl-C comes to it through `stop` alone."""
    resume = ["--resume"] if checkpoints(sweep.folder / run.name) else []
    vlrl = [sys.executable, "-c", "from vlrl.cli.main import main; main()"]
    command = [*vlrl, sweep.command, str(sweep.config), *sweep.arguments(run), *resume]
    with (sweep.folder / f"{run.name}.log").open("ab") as log:
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )


def stop(processes: Collection[subprocess.Popen[bytes]]) -> None:
    """Have runs save and end; those that take too long are killed."""
    for process in processes:
        process.send_signal(signal.SIGTERM)
    end = time.monotonic() + STOP_S
    for process in processes:
        try:
            process.wait(max(0.0, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()


def _as_yaml(value: Any) -> str:
    """A value as YAML reads it, in one line."""
    return value if isinstance(value, str) else json.dumps(value)
