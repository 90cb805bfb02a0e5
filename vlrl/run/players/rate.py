"""The pass rate of each training row under the start model, kept beside the data: `vlrl data rate`."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from vlrl.config import Config
from vlrl.data.curriculum.open import header_of, keys_of, rate_path
from vlrl.data.curriculum.rate_file import RateFile, RateJournal
from vlrl.data.curriculum.summary import rate_summary
from vlrl.data.run_data import numbered
from vlrl.data.stream import Prepared
from vlrl.process.event_loop import call_page
from vlrl.rollout.groups import require_played, require_scored
from vlrl.run.players.heldout import Answers, Asking
from vlrl.run.run import Run
from vlrl.tracking.console import TrainConsole
from vlrl.types import Sample, Trajectory

ROWS_PER_BLOCK = 256
"""Rows that are answered together and then kept: a kill costs at most their completions."""


@dataclass(frozen=True, slots=True)
class RatedSource:
    """A training source with the pass rates of its rows.

    Attributes:
        section: its dotted key.
        path: the file of rates.
        rates: what is in it.
        num_generated_tokens: by this call; 0 if the file was whole.
        duration_s: wall time of this call.
    """

    section: str
    path: Path
    rates: RateFile
    num_generated_tokens: int
    duration_s: float

    def summary(self) -> dict[str, Any]:
        """Summary as `vlrl data rate --json` prints it."""
        return {
            "section": self.section,
            "path": str(self.path),
            **rate_summary(self.rates),
            "num_generated_tokens": self.num_generated_tokens,
            "duration_s": round(self.duration_s, 3),
        }


def rate_rows(
    config: Config | Mapping[str, Any],
    num_samples: int = 8,
    folder: Path | None = None,
    console: TrainConsole | None = None,
) -> list[RatedSource]:
    """Rate every training row of a config, from Python: in a script, thread or notebook.

    A call that was killed is taken up where it was: rows that have a rate are not asked again.

    Args:
        config: a config, or a mapping that is one.
        num_samples: completions of each row, at the training temperature.
        folder: where the files go; None is beside the data.
        console: where progress is shown; by default on stdout.

    Raises:
        ConfigError: for a streamed source, or a mapping that is not a config.
        EnvError: if more episodes fail than episodes.max_failed_share.
        ScoringError: if more completions cannot be scored than scoring.max_failed_share.
    """

    def page(checked: Config, shown: TrainConsole) -> list[RatedSource]:
        with Run(checked, shown, train=False, generate=True) as run:
            run.open_rollouts()
            return [_rate(run, index, num_samples, folder) for index in range(len(checked.data.train))]

    return call_page(page, config, console, lambda checked: TrainConsole(f"rate {checked.model.path}", 1))


def _rate(run: Run, index: int, num_samples: int, folder: Path | None) -> RatedSource:
    """One source, block by block; the next block's media are resolved while engines answer this one's."""
    sources, config, begin = run.data.sources.train, run.config, time.monotonic()
    source, section = sources[index], keys_of(sources)[index]
    rows = numbered(source.rows, section)
    header = header_of(config, source.options, rows, num_samples)
    path = rate_path(config, source.options, header, folder)
    journal, num_tokens = RateJournal(path, header), 0
    missing = journal.rates.missing.tolist()
    blocks = [list(of_block) for _, of_block in groupby(missing, lambda n: n // ROWS_PER_BLOCK)]
    run.console.phase(f"rating {len(missing)} of {len(rows)} rows of {section}")
    with ThreadPoolExecutor(config.data.num_workers) as threads:
        ahead = threads.map(lambda n: run.data.train_row(index, n), blocks[0] if blocks else [])
        for number, block in enumerate(blocks):
            prepared = list(ahead)
            if number + 1 < len(blocks):
                ahead = threads.map(lambda n: run.data.train_row(index, n), blocks[number + 1])
            num_tokens += _rate_block(run, journal, source.name, block, prepared)
            run.console.note(f"{section}: {number + 1} of {len(blocks)} blocks of rows")
    return RatedSource(section, path, journal.finish(), num_tokens, time.monotonic() - begin)


def _rate_block(
    run: Run, journal: RateJournal, source: str, block: Sequence[int], prepared: Sequence[Prepared]
) -> int:
    """Answer and score some rows, and keep what passed; tokens that were generated."""
    config = run.config
    usable = {n: each.sample for n, each in zip(block, prepared, strict=True) if each.sample is not None}
    asking = Asking(f"rate {source} {block[0]}", group_size=journal.rates.header.num_samples, step=0)
    answers = run.runner.run(_answers(run, list(usable.values()), asking))
    of_rows = [[t for group in groups for t in group.trajectories] for groups in answers.of_samples]
    played = [t for of_row in of_rows for t in of_row]
    require_played([t.failure for t in played if t.failed], len(played), config.episodes.max_failed_share)
    require_scored(answers.failures, len(played), config.scoring.max_failed_share)
    part, threshold = run.reward.first_part(source), config.data.pass_threshold
    values = [[_value(t, part) for t in of_row if t.score is not None] for of_row in of_rows]
    journal.add(
        rows=list(usable),
        passed=[sum(value >= threshold for value in of_row) for of_row in values],
        scored=[len(of_row) for of_row in values],
        unusable=[n for n in block if n not in usable],
    )
    return sum(t.num_action_tokens for t in played)


async def _answers(run: Run, samples: Sequence[Sample], asking: Asking) -> Answers:
    return await run.rollouts.answer(samples, asking) if samples else Answers([], [])


def _value(trajectory: Trajectory, part: str) -> float:
    """The reward that passes, of a trajectory that has a score."""
    score = trajectory.score
    return 0.0 if score is None else score.parts.get(part, score.total)
