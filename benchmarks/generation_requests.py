"""What all sides of generation.py have in common: config, samples, seeds, and what they count."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from typing import Any

from step_job import TALLY, Block, Job, Pipe
from vlrl_step import make_config

from vlrl.config import Config
from vlrl.envs.visual.questions.digit_sum import DigitSum
from vlrl.processors.auto import open_processor
from vlrl.types import Sample


class Requests:
    """Batches of samples, the same for all sides, prepared before they are timed.

    Attributes:
        config: of the run that the loop's side plays.
        processor: its processor.
    """

    def __init__(self, job: Job) -> None:
        self.job, self.config = job, make_config(job)
        self.processor = open_processor(self.config)
        options = {"num_rows": job.num_rows, "num_digits": job.case.images}
        self._rows = DigitSum(**options, image_size=job.case.image_pixels)
        self._next = 0

    def batches(self, number: int) -> list[tuple[list[Sample], list[tuple[int, ...]]]]:
        """The next so many batches: samples, and of each its seed path."""
        found, groups = [], self.job.case.groups
        for _ in range(number):
            positions = range(self._next, self._next + groups)
            samples = [self.processor.sample(self._rows[position]) for position in positions]
            paths = [(self.config.run.seed, self._next // groups, position) for position in positions]
            found.append((samples, paths))
            self._next += groups
        return found


def serve(pipe: Pipe, requests: Requests, generate: Any) -> None:
    """Do the blocks that the pipe asks for.

    Args:
        pipe: to the driver.
        requests: where batches come from.
        generate: (samples, seed paths) → the tokens of each completion, groups one after the other.
    """
    while steps := pipe.next_block():
        batches, digest = requests.batches(steps), hashlib.sha256()
        block = Block(steps)
        done: list[tuple[list[Sample], Sequence[Sequence[int]]]] = []
        for samples, paths in batches:
            done.append((samples, generate(samples, paths)))
            block.end_step({}, rest="generate")
        for samples, completions in done:
            count(requests.config, samples, completions)
            digest.update(json.dumps([list(map(int, tokens)) for tokens in completions]).encode())
        pipe.send(block=block.as_dict(digest=digest.hexdigest()))


def count(config: Config, samples: Sequence[Sample], completions: Iterable[Sequence[int]]) -> None:
    """Add a batch to the tally; a completion's reward is its number, so that all differ."""
    size = config.rollout.group_size
    for number, tokens in enumerate(completions):
        prompt = samples[number // size].prompt.token_ids
        TALLY.add(len(prompt), len(tokens), float(TALLY.completions))
