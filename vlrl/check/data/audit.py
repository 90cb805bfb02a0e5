"""One row, looked at as training will: read, its media decoded, its tokens counted, its rewards called."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any

from vlrl.check.data.asked import asked_of
from vlrl.check.data.content import answer_sha256, prompt_sha256, source_sha256
from vlrl.check.data.plain import PlainSamples, row_media
from vlrl.check.data.records import CheckedSource, Job, MediumFacts, Problem, RowAudit
from vlrl.check.data.rewards import RewardTrial, encode_bytes
from vlrl.config import Config
from vlrl.data import open_dataset
from vlrl.data.preferences import completions_of
from vlrl.data.run_data import prompt_room
from vlrl.engine.structured import structured_params
from vlrl.errors import DataError
from vlrl.processors.auto import open_processor
from vlrl.processors.messages import split_parts
from vlrl.types import Row, Sample


class Auditor:
    """Audits the rows of a job; made once in every worker."""

    def __init__(self, job: Job) -> None:
        """Open the sources, the processor and the rewards.

        Raises:
            VlrlError: for whatever of them cannot be opened.
        """
        self._job = job
        self._plain = PlainSamples(job.config)
        self._processor: Any = open_processor(job.config) if job.with_model else None
        self._datasets = [open_dataset(source.config, source.section) for source in job.sources]
        self._runner = asyncio.Runner()
        encode = self._processor.encode_target if self._processor else encode_bytes
        self._trials = [
            RewardTrial(source_rewards(job.config, source) if job.with_rewards else [], self._runner, encode)
            for source in job.sources
        ]

    def audit(self, source: int, row: int) -> RowAudit:
        """Everything about one row; whatever is wrong with it is in the result, never raised."""
        try:
            record = self._datasets[source][row]
            split_parts(record["messages"], f"sample {record['id']!r}")
            return self._audit(source, row, record)
        except DataError as error:
            return _unreadable(source, row, str(error))
        except Exception as error:  # a stranger's dataset or processor may raise anything: one row's fault
            return _unreadable(source, row, f"row {row}: {type(error).__name__}: {error}")

    def _audit(self, source: int, row: int, record: Row) -> RowAudit:
        problems: list[Problem] = []
        sample: Sample | None = None
        try:
            sample = (self._processor or self._plain).sample(record)
            structured_params(record.get("structured_outputs", ""), sample.id)
        except DataError as error:
            problems += self._broken_media(record) or [Problem("bad prompt", str(error))]
        if sample is not None:
            problems += self._length_problems(sample, source)
            problems += self._pair_problems(sample)
            problems += self._trials[source].problems(sample)
        return RowAudit(
            source,
            row,
            id=str(record["id"]),
            place=str(record.get("place", "")),
            problems=tuple(problems),
            media=tuple(self._facts(record, sample)) if sample else (),
            num_tokens=len(sample.prompt.token_ids) if sample and self._processor else None,
            prompt_sha256=prompt_sha256(record["messages"], record.get("env")),
            is_preference=record.get("rejected") is not None or record.get("label") is not None,
            is_episode=bool(record.get("env")),
            answer_sha256=answer_sha256(record),
            asked=asked_of(record, _only_size(sample)),
        )

    def _length_problems(self, sample: Sample, source: int) -> Iterator[Problem]:
        if self._processor is None:
            return
        num_tokens, answer = len(sample.prompt.token_ids), "a completion"
        room = prompt_limit(self._job.config, self._job.sources[source])
        if not source_rewards(self._job.config, self._job.sources[source]):
            target = self._processor.encode_target(sample.target or "", sample.prompt.opened)
            room, answer = prompt_room(self._job.config, len(target)), "its target"
        if num_tokens > room:
            num_media = sum(medium.num_tokens for medium in sample.media)
            yield Problem(
                "too long",
                f"sample {sample.id!r}: the prompt is {num_tokens} tokens long ({num_media} of media), and "
                f"{room} fit beside {answer}; raise generator.max_model_len, or lower processor.max_pixels",
            )

    def _pair_problems(self, sample: Sample) -> list[Problem]:
        """What `vlrl dpo` would refuse."""
        if self._processor is None or self._job.config.preferences is None:
            return []
        try:
            completions_of(sample, self._processor, self._job.config.preferences)
        except DataError as error:
            return [Problem("no pair", str(error))]
        return []

    def _broken_media(self, record: Row) -> list[Problem]:
        """Which of a row's media cannot be decoded; only asked where something failed."""
        found = []
        for part in row_media(record):
            try:
                self._plain.decode(part, f"sample {record['id']!r}")
            except DataError as error:
                found.append(Problem("broken medium", str(error)))
        return found

    def _facts(self, record: Row, sample: Sample) -> Iterator[MediumFacts]:
        for part, medium in zip(row_media(record), sample.media, strict=True):
            height, width = medium.original_size
            num_tokens = medium.num_tokens if self._processor else None
            sha256 = source_sha256(part[part["type"]], self._job.config.media, f"sample {record['id']!r}")
            num_frames = 1 if medium.kind == "audio" else len(medium.frames)
            yield MediumFacts(medium.kind, sha256, height, width, num_frames, num_tokens)


def _only_size(sample: Sample | None) -> tuple[int, int] | None:
    """(height, width) in original pixels of a row's one medium."""
    return sample.media[0].original_size if sample is not None and len(sample.media) == 1 else None


def prompt_limit(config: Config, source: CheckedSource) -> int:
    """Longest prompt of a source's rows, in tokens; in supervised training the target comes out of it."""
    return prompt_room(config, config.rollout.max_tokens if source_rewards(config, source) else 0)


def source_rewards(config: Config, source: CheckedSource) -> Sequence[Any]:
    """The rewards of a source's rows: its own, or else the run's."""
    return source.config.rewards or config.rewards


def _unreadable(source: int, row: int, message: str) -> RowAudit:
    return RowAudit(source, row, f"row {row}", problems=(Problem("unreadable row", message),))
