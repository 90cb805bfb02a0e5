"""What it costs to keep the rollouts of a step on disk: processor seconds and bytes, by part.

    python benchmarks/rollouts.py [--repeat 5]

Three jobs: the quickstart's digits, answers of 2,000 tokens about a photograph, episodes of 20 screenshots.
The groups are made up (random tokens, random shapes on the images), and are the same for every repeat. In a
run this work is done in the background, by the process that played the episodes, once a step: divide by the
time of your step. Medians of processor seconds of this process.
"""

from __future__ import annotations

import argparse
import hashlib
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np
import pyarrow.parquet as pq
from PIL import Image, ImageDraw
from rich.console import Console
from rich.table import Table

from vlrl.batch import TokenValues
from vlrl.ledger import Credit, Ledger, Turn, VersionSpan
from vlrl.tracking.rollouts.records import images_of, write_images
from vlrl.tracking.rollouts.table import RolloutPlace, rollout_table
from vlrl.types import Group, Media, Prompt, Sample, Score, Trajectory

T = TypeVar("T")
VOCABULARY = 50_000


@dataclass(frozen=True)
class Job:
    """Groups of a step: sizes in tokens a turn and pixels."""

    name: str
    num_groups: int
    group_size: int
    num_turns: int
    context: int
    action: int
    image_size: tuple[int, int]

    @property
    def num_rollouts(self) -> int:
        return self.num_groups * self.group_size


JOBS = (
    Job("digits", 16, 8, 1, 60, 24, (56, 56)),
    Job("photographs", 16, 8, 1, 1_200, 2_000, (1_036, 1_036)),
    Job("episodes of 20 screenshots", 4, 8, 20, 1_000, 100, (800, 1_280)),
)


class Words:
    """Spells tokens."""

    def token_texts(self, token_ids: Sequence[int]) -> list[str]:
        return [f"word{number}" for number in token_ids]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeat", type=int, default=5)
    repeat = parser.parse_args().repeat
    table = Table(
        "a step of", "rollouts", "tokens", "images", "table s", "file s", "images s", "MB", "images MB"
    )
    for job in JOBS:
        table.add_row(*measured(job, repeat))
    Console(width=140).print(table)


def measured(job: Job, repeat: int) -> list[str]:
    """A row of the table."""
    groups = [group_of(job, number) for number in range(job.num_groups)]
    places = [RolloutPlace(0, number, number) for number in range(job.num_groups)]
    values = values_of(groups)
    seconds: dict[str, list[float]] = {"table": [], "file": [], "images": []}
    for _ in range(repeat):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "000000.parquet")
            kept = timed(seconds["table"], partial(rollout_table, groups, places, Words(), values))
            timed(seconds["file"], partial(pq.write_table, kept, file, compression="zstd"))
            timed(seconds["images"], partial(write_images, Path(folder), images_of(groups)))
            images = list(Path(folder, "media").iterdir())
            sizes = file.stat().st_size, sum(image.stat().st_size for image in images)
    num_tokens = sum(len(ledger.token_ids) for g in groups for t in g.trajectories for ledger in t.ledgers)
    return [
        job.name,
        f"{job.num_rollouts:,}",
        f"{num_tokens:,}",
        f"{len(images):,}",
        *(f"{statistics.median(each):.3f}" for each in seconds.values()),
        *(f"{size / 1e6:.2f}" for size in sizes),
    ]


def timed(into: list[float], work: Callable[[], T]) -> T:
    """Do it, and note the processor seconds of the whole process."""
    begin = time.process_time()
    result = work()
    into.append(time.process_time() - begin)
    return result


def group_of(job: Job, number: int) -> Group:
    """A group, whose members see images of their own after the first one."""
    rng = np.random.default_rng(number)
    shared = image(rng, job.image_size)
    prompt = Prompt(np.arange(job.context), np.arange(job.context), np.zeros((3, job.context), np.int64), 0)
    sample = Sample(
        f"row/{number}", ({"role": "user", "content": "How many?"},), (shared,), prompt, answer="7"
    )
    trajectories, credits = [], []
    for index in range(job.group_size):
        media = (shared, *(image(rng, job.image_size) for _ in range(job.num_turns - 1)))
        ledger = ledger_of(job, rng, media)
        trajectories.append(
            Trajectory(sample, index, (ledger,), "seven", "ok", Score(float(index % 2), {"exact": 1.0}))
        )
        advantages = np.full(len(ledger.token_ids), index - job.group_size / 2, np.float32)
        credits.append(Credit((advantages,), (ledger.loss_mask,)))
    return Group(trajectories, credits)


def ledger_of(job: Job, rng: np.random.Generator, media: tuple[Media, ...]) -> Ledger:
    """Turns of equal lengths."""
    size = job.context + job.action
    num_tokens = size * job.num_turns
    turns = tuple(
        Turn(
            (n * size, n * size + job.context), (n * size + job.context, (n + 1) * size), "click", num_media=1
        )
        for n in range(job.num_turns)
    )
    mask = np.arange(num_tokens) % size >= job.context
    spans = tuple(VersionSpan(3, *turn.action) for turn in turns)
    logprobs = np.where(mask, -rng.exponential(size=num_tokens), 0).astype(np.float32)
    ids = rng.integers(0, VOCABULARY, num_tokens)
    return Ledger(ids, np.zeros((3, num_tokens), np.int64), mask, logprobs, spans, turns, media)


def image(rng: np.random.Generator, size: tuple[int, int]) -> Media:
    """Something between a drawing and a photograph: shapes on a gradient with a little noise."""
    height, width = size
    ramp = np.linspace(0, 255, width, dtype=np.uint8)
    canvas = Image.fromarray(np.repeat(np.tile(ramp, (height, 1))[..., None], 3, axis=2))
    draw = ImageDraw.Draw(canvas)
    for _ in range(30):
        x, y = int(rng.integers(width)), int(rng.integers(height))
        box = (x, y, x + width // 8, y + height // 8)
        draw.rectangle(box, fill=tuple(int(v) for v in rng.integers(0, 255, 3)))
    pixels = np.asarray(canvas)
    sha256 = hashlib.sha256(pixels.tobytes()).hexdigest()
    return Media("image", sha256, pixels[None], size, (1, height // 14, width // 14), 1)


def values_of(groups: Sequence[Group]) -> TokenValues:
    """What a trainer computed of all generated tokens."""
    origins = []
    for number, group in enumerate(groups):
        for trajectory in group.trajectories:
            tokens = np.flatnonzero(trajectory.ledgers[0].loss_mask)
            first = np.broadcast_to((number, trajectory.group_index, 0), (len(tokens), 3))
            origins.append(np.column_stack([first, tokens]))
    joined = np.concatenate(origins)
    return TokenValues(joined, *(np.zeros(len(joined), np.float32) for _ in range(2)))


if __name__ == "__main__":
    main()
