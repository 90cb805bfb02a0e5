"""One row, looked at as training will: read, its media decoded, its tokens counted, its rewards called."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from vlrl.config import Config
from vlrl.data import open_dataset
from vlrl.errors import DataError
from vlrl.preflight.content import answer_sha256, prompt_sha256, source_sha256
from vlrl.preflight.records import Job, MediumFacts, Problem, RowAudit, Source
from vlrl.preflight.rewards import RewardTrial, encode_bytes
from vlrl.processors.auto import open_processor
from vlrl.processors.media_store import MediaStore
from vlrl.processors.messages import media_parts, split_parts
from vlrl.types import Media, Prompt, Row, Sample


class Auditor:
    """Audits the rows of a job; made once in every worker."""

    def __init__(self, job: Job) -> None:
        """Open the sources, the processor and the rewards.

        Raises:
            VlrlError: for whatever of them cannot be opened.
        """
        self._job = job
        self._store = MediaStore(job.config.media)
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
        except DataError as error:
            return _unreadable(source, row, str(error))
        except Exception as error:  # a stranger's dataset may raise anything
            return _unreadable(source, row, f"row {row}: {type(error).__name__}: {error}")
        problems: list[Problem] = []
        sample: Sample | None = None
        try:
            sample = (self._processor.sample if self._processor else self._untokenised)(record)
        except DataError as error:
            problems += self._broken_media(record) or [Problem("bad prompt", str(error))]
        if sample is not None:
            problems += self._length_problems(sample, source)
            problems += self._trials[source].problems(sample)
        return RowAudit(
            source,
            row,
            id=str(record["id"]),
            place=str(record.get("place", "")),
            problems=tuple(problems),
            media=tuple(self._facts(record, sample)) if sample else (),
            num_tokens=len(sample.prompt.token_ids) if sample and self._processor else None,
            prompt_sha256=prompt_sha256(record["messages"]),
            answer_sha256=answer_sha256(record),
        )

    def _length_problems(self, sample: Sample, source: int) -> Iterator[Problem]:
        if self._processor is None:
            return
        num_tokens, limit = len(sample.prompt.token_ids), prompt_limit(self._job.config)
        num_media = sum(medium.num_tokens for medium in sample.media)
        said = f"sample {sample.id!r}: the prompt is {num_tokens} tokens long ({num_media} of them media)"
        if num_tokens > limit:
            remedy = "raise generator.max_model_len, or lower processor.max_pixels"
            yield Problem("too long", f"{said}, and {limit} fit; {remedy}")
        elif sample.target is not None and not source_rewards(self._job.config, self._job.sources[source]):
            total = num_tokens + len(self._processor.encode_target(sample.target))
            most = self._job.config.generator.max_model_len
            if total > most:
                text = f"{said}, {total} with its target, and generator.max_model_len={most}"
                yield Problem("too long", text)

    def _broken_media(self, record: Row) -> list[Problem]:
        """Which of a row's media cannot be decoded; only asked where something failed."""
        found = []
        for part in _all_media(record):
            try:
                self._decoded(part, f"sample {record['id']!r}")
            except DataError as error:
                found.append(Problem("broken medium", str(error)))
        return found

    def _untokenised(self, record: Row) -> Sample:
        """A row without a model: media at their own size, a prompt of no tokens."""
        media = tuple(self._decoded(part, f"sample {record['id']!r}") for part in _all_media(record))
        nothing = np.zeros(0, np.int64)
        return Sample(
            id=str(record["id"]),
            messages=tuple(record["messages"]),
            media=media,
            prompt=Prompt(nothing, nothing, np.zeros((3, 0), np.int64), 0),
            answer=record.get("answer"),
            target=record.get("target"),
            metadata=record.get("metadata", {}),
        )

    def _decoded(self, part: Mapping[str, Any], where: str) -> Media:
        source = part[part["type"]]
        if part["type"] == "image":
            frames = self._store.image(source, self._store.image_size(source, where), where)
        else:
            from vlrl.processors.video import VideoRequest

            request = VideoRequest.of(self._job.config.processor.video, part, where)
            info = self._store.video_info(source, request, where)
            frames = self._store.video(source, request, info.size, where)
        return Media(
            frames.kind,
            frames.sha256,
            frames.pixels,
            frames.original_size,
            (1, 1, 1),
            0,
            frames.timestamps_s,
            frames.fps,
        )

    def _facts(self, record: Row, sample: Sample) -> Iterator[MediumFacts]:
        for part, medium in zip(_all_media(record), sample.media, strict=True):
            height, width = medium.original_size
            num_tokens = medium.num_tokens if self._processor else None
            sha256 = source_sha256(part[part["type"]], self._job.config.media, f"sample {record['id']!r}")
            yield MediumFacts(medium.kind, sha256, height, width, len(medium.frames), num_tokens)


def prompt_limit(config: Config) -> int:
    """Longest prompt that the config leaves room for, in tokens."""
    return config.data.max_prompt_tokens or config.generator.max_model_len - config.rollout.max_tokens


def source_rewards(config: Config, source: Source) -> Sequence[Any]:
    """The rewards of a source's rows: its own, or else the run's."""
    return source.config.rewards or config.rewards


def _unreadable(source: int, row: int, message: str) -> RowAudit:
    return RowAudit(source, row, f"row {row}", problems=(Problem("unreadable row", message),))


def _all_media(record: Row) -> list[Mapping[str, Any]]:
    return [part for message in record["messages"] for part in media_parts(message)]
