"""Processes of a run are killed at random times: what it trains, and in which order, stays what it was.

Each of 20 seeds decides who is killed, by SIGKILL, and when: an engine, an environment's process, a trainer's
rank or the driver, which the test then starts again with --resume. Even seeds are of a synchronous run whose
batches are filtered, odd ones of an asynchronous one.

    VLRL_KILL_SCHEDULES=0,1 pytest -s -m slow tests/e2e/test_kill_schedules.py     # these seeds alone
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from sessions import Session
from whole_runs import rollouts

from vlrl.run.checkpoint import checkpoints
from vlrl.tracking.metrics import repeatable

pytestmark = [pytest.mark.slow, pytest.mark.timeout(5400)]

NUM_STEPS = 20
SAVE_EVERY = 3
MAX_STALENESS = 2
SEEDS = [int(seed) for seed in os.environ.get("VLRL_KILL_SCHEDULES", "").split(",") if seed] or range(20)
NUM_BLOCKS = 4  # of five seeds of one mode, which are compared with one undisturbed run
STEPS_LEFT = 8  # after the last kill, so that it comes before the run's end
LIMIT_S = 1800.0  # of whatever is waited for: the machine may have much else to do

VICTIMS = {"engine": "ray::GeneratorActor", "env": "vlrl.environment.host.worker", "rank": "ray::TrainerRank"}
KINDS = (*VICTIMS, "driver")

PLUG_INS = '''
import time


def parity(completion, answer):
    """Something that a random model gets right every other time, and that takes the time of a real step."""
    time.sleep(0.2)
    return float(sum(map(ord, completion)) % 2)
'''


def tree(mode: str, model: Path, folder: Path) -> dict[str, Any]:
    """A run of episodes with images, as small as can be."""
    common: dict[str, Any] = {
        "run": {"name": "a", "dir": str(folder), "seed": 11},
        "model": {"path": str(model)},
        "processor": {"min_pixels": 28 * 28, "max_pixels": 56 * 56},
        "data": {
            "train": {
                "name": "env",
                "options": {"env": "visual/frozen_lake", "options": {"image_size": 112}, "num_rows": 64},
            }
        },
        "rewards": [{"name": f"{folder}/reward.py:parity"}],
        "num_steps": NUM_STEPS,
        "rollout": {"prompts_per_step": 2, "group_size": 2, "max_tokens": 4},
        "episodes": {"max_turns": 2},
        "env": {"isolation": "process", "num_processes": 2, "attempts": 3},
        "generator": {"max_model_len": 512, "max_num_seqs": 8, "max_restarts": 9, "cpus": 0.5},
        "trainer": {"num_ranks": 2, "cpus_per_rank": 0.5, "max_tokens_per_micro_batch": 1024},
        "optim": {"lr": 1.0e-3},
        "parity": {"num_samples": 1},
        "checkpoint": {"every": SAVE_EVERY},
        "logging": {"tensorboard": False},
    }
    if mode == "sync":
        filters = {"filters": [{"name": "zero_variance"}], "over_sampling": 1.5, "max_dropped_share": 0.95}
        return common | {"batch": filters}
    common["generator"]["mode"] = "continuous"
    common["episodes"]["lockstep"] = False
    return common | {
        "asynchronous": {"mode": "async", "pipeline_depth": 2, "max_staleness": MAX_STALENESS},
        "algorithm": {"correction": {"kind": "truncated"}},
    }


@dataclass(frozen=True)
class Kill:
    """Kill one of a kind, so many seconds after a step was logged, -1 being the start."""

    kind: str
    step: int
    delay_s: float


def schedule(seed: int) -> list[Kill]:
    """Two or three kills of different kinds; over the seeds every kind comes up as often."""
    rng = random.Random(seed)
    others = [kind for kind in KINDS if kind != KINDS[seed // 2 % len(KINDS)]]
    kinds = [KINDS[seed // 2 % len(KINDS)], *rng.sample(others, rng.randint(1, 2))]
    steps = sorted(rng.sample(range(-1, NUM_STEPS - STEPS_LEFT), len(kinds)))
    return [Kill(kind, step, rng.uniform(0, 2)) for kind, step in zip(kinds, steps, strict=True)]


@dataclass
class Play:
    """A run in a folder of its own, from its start to its end, with whatever restarts it takes."""

    folder: Path
    scratch: Path
    told: list[str] = field(default_factory=list)
    drivers: list[int] = field(default_factory=list)
    num_kills: int = 0
    begin: float = field(default_factory=time.monotonic)

    def start(self) -> None:
        """Start the driver, which resumes if there is something to resume from."""
        resume = ["--resume"] if checkpoints(self.run_dir) else []
        arguments = ["train", str(self.folder / "run.yaml"), *resume]
        self.session = Session(self.folder, *arguments, env={"TMPDIR": str(self.scratch)})
        self.drivers.append(self.session.process.pid)

    @property
    def run_dir(self) -> Path:
        """The run's folder."""
        return self.folder / "a"

    def lines(self, name: str) -> list[dict[str, Any]]:
        """Lines of a JSONL file, without a last line that is being written."""
        path = self.run_dir / name
        texts = path.read_text().split("\n")[:-1] if path.is_file() else []
        return [json.loads(text) for text in texts]

    def last_step(self) -> int:
        """That was logged."""
        return max((line["step"] for line in self.lines("metrics.jsonl")), default=-1)

    def suffer(self, kill: Kill, rng: random.Random) -> None:
        """Wait for the time, and kill."""
        self.session.wait_until(lambda: self.last_step() >= kill.step, LIMIT_S)
        time.sleep(kill.delay_s)
        if kill.kind == "driver":
            pid = self.session.process.pid
        else:
            self.session.wait_until(lambda: bool(self.of_kind(kill.kind)), LIMIT_S)
            pid = rng.choice(self.of_kind(kill.kind) or [0])
        self.tell(f"kill {kill.kind} {pid}, {kill.delay_s:.1f} s after step {kill.step}")
        if pid and self.session.process.poll() is None:
            os.kill(pid, signal.SIGKILL)
            self.num_kills += 1
        if kill.kind == "driver":
            assert self.session.end(LIMIT_S, gone_s=120) == -signal.SIGKILL
            self.start()

    def of_kind(self, kind: str) -> list[int]:
        """Process numbers."""
        return sorted(pid for pid, words in self.session.processes().items() if VICTIMS[kind] in words)

    def finish(self) -> None:
        """Wait for the end, and see that nothing is left of it."""
        assert self.session.end(LIMIT_S, gone_s=120) == 0, self.session.text()
        for event in self.lines("events.jsonl"):
            self.tell(f"{event['event']}: {event['text'].partition(' (')[0]}")
        self.tell("done")
        left = [p.name for pid in self.drivers for p in Path("/dev/shm").glob(f"*-{pid}-*")]
        assert left == []
        files = [p.name for p in self.scratch.iterdir() if p.name != "ray"]  # Ray's logs are kept
        # An engine that is killed as it starts has no time to remove the file of vLLM's rendezvous.
        unfinished = [name for name in files if name.startswith("vllm_dist_")]
        assert len(unfinished) <= self.num_kills
        assert set(files) == set(unfinished)

    def tell(self, text: str) -> None:
        """Print a line for whoever watches."""
        self.told.append(f"{time.monotonic() - self.begin:7.1f} s  step {self.last_step():2d}  {text}")
        print(self.told[-1], flush=True)


NewPlay = Callable[[str], Play]


@pytest.fixture(scope="module")
def new_play(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[NewPlay]:
    plays: list[Play] = []

    def make(mode: str) -> Play:
        folder = tmp_path_factory.mktemp(mode)
        (folder / "reward.py").write_text(PLUG_INS)
        (folder / "run.yaml").write_text(yaml.safe_dump(tree(mode, tiny_model, folder)))
        # Sockets lie in it, whose paths are short.
        plays.append(Play(folder, Path(tempfile.mkdtemp(prefix="vk-", dir="/tmp"))))
        plays[-1].start()
        return plays[-1]

    yield make
    for play in plays:
        play.session.kill()
        shutil.rmtree(play.scratch)


def timeless(line: Mapping[str, Any]) -> dict[str, Any]:
    """A step's numbers but those that a clock made, and what is counted of failures."""
    return {k: v for k, v in repeatable(line).items() if not k.startswith("failures/")}


def identity(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """Which rollout it is, of those of its run."""
    return tuple(row[key] for key in ("step", "position", "sample_id", "group_index"))


@pytest.mark.parametrize("block", sorted({seed % NUM_BLOCKS for seed in SEEDS}))
def test_the_samples_and_their_order_are_those_of_the_undisturbed_run(block: int, new_play: NewPlay) -> None:
    mode = ("sync", "async")[block % 2]
    print(f"\n{mode}, undisturbed")
    whole = new_play(mode)
    whole.finish()
    for seed in (seed for seed in SEEDS if seed % NUM_BLOCKS == block):
        suffer_and_compare(seed, mode, new_play(mode), whole)


def suffer_and_compare(seed: int, mode: str, play: Play, whole: Play) -> None:
    """Kill what the seed says, and compare with the run that nobody disturbed."""
    kills, rng = schedule(seed), random.Random(seed)
    print(f"\nschedule {seed}, {mode}: {', '.join(f'{k.kind} at {k.step}' for k in kills)}")
    for kill in kills:
        play.suffer(kill, rng)
    play.finish()

    metrics, samples = play.lines("metrics.jsonl"), play.lines("samples.jsonl")
    assert [line["step"] for line in metrics] == list(range(NUM_STEPS)), seed
    assert [line["step"] for line in samples] == list(range(NUM_STEPS)), seed
    for one, other in zip(samples, whole.lines("samples.jsonl"), strict=True):
        assert (one["positions"], one["sample_ids"]) == (other["positions"], other["sample_ids"]), seed
        assert one["step"] - min(one["oldest_versions"]) <= (0 if mode == "sync" else MAX_STALENESS), seed
    rows, undisturbed = rollouts(play.run_dir), rollouts(whole.run_dir)
    assert [identity(row) for row in rows] == [identity(row) for row in undisturbed], seed
    if mode == "sync" and not any(kill.kind == "env" for kill in kills):  # an episode replayed alone is
        # generated in another batch, so its last bits may differ; the rest is the same to the last one
        assert [timeless(line) for line in metrics] == [timeless(m) for m in whole.lines("metrics.jsonl")]
        assert rows == undisturbed
