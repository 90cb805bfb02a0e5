"""A run's data: its sources opened and named, the training stream, and the held-out samples."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path

from vlrl.config import Config
from vlrl.config.data import DatasetConfig
from vlrl.config.options import RewardConfig
from vlrl.data import Prepared, Rows, SampleStream, StreamedRows, open_source, with_rewards
from vlrl.data.order import Order
from vlrl.data.overlong import PAIR_REMEDY, REMEDY, PromptTooLong, fit_row
from vlrl.data.preferences import completions_of, encoded_completion
from vlrl.errors import ConfigError, DataError
from vlrl.protocols import Processor
from vlrl.registry.objects import label_of
from vlrl.types import Row, Sample

HELDOUT_BATCH = 256
"""Held-out rows resolved at once, where all of them are wanted."""

MAX_REPORTED = 5
"""Broken rows that are named; the metrics count all."""

ReadFn = Callable[[], Row]
TellFn = Callable[[str, str], None]


@dataclass(frozen=True, slots=True)
class Source:
    """An opened source; `name` is what its samples carry, "" for the only one to train on."""

    name: str
    options: DatasetConfig
    rows: Rows | StreamedRows


@dataclass(frozen=True, slots=True)
class Sources:
    """The rows a run trains on and those it holds out."""

    train: Sequence[Source]
    heldout: Sequence[Source]

    @classmethod
    def open(cls, config: Config) -> Sources:
        """Open everything the config names.

        Raises:
            ConfigError: for an unknown name or a wrong option; for held-out rows without a known number.
            DataError: for a source that is missing or empty.
        """
        train, heldout = config.data.train, config.data.eval
        train_names = [""] if len(train) == 1 else _names(train)
        heldout_names = [f"heldout/{name}" for name in _names(heldout)]
        opened = cls(
            _open(train, train_names, "data.train", config.rewards),
            _open(heldout, heldout_names, "data.eval", ()),
        )
        for source in opened.heldout:
            if isinstance(source.rows, StreamedRows) and source.options.limit is None:
                raise ConfigError(f"data.eval: {source.options.name!r} is streamed; give it a limit")
        return opened

    @property
    def rewards(self) -> Mapping[str, Sequence[RewardConfig]]:
        """Source's name → its own rewards; empty means the run's."""
        return {source.name: source.options.rewards for source in (*self.train, *self.heldout)}


class RunData:
    """Samples of a run, all of which fit the model's context.

    Attributes:
        sources: opened.
        stream: the training samples of each step.
        num_heldout_dropped: held-out rows left out so far, too long or broken.
    """

    def __init__(
        self,
        config: Config,
        sources: Sources,
        processor: Processor,
        *,
        supervised: bool,
        tell: TellFn = lambda event, text: None,
        owns: Callable[[int], bool] | None = None,
        orders: Mapping[int, Order] | None = None,
    ) -> None:
        """Start the stream's threads.

        Args:
            config: the whole config.
            sources: opened.
            processor: makes samples of rows.
            supervised: leave room for a row's target instead of for rollout.max_tokens.
            tell: called with an event's name and a sentence for the first rows that data.on_broken drops.
            owns: positions of the stream that are prepared ahead; None is all.
            orders: of the training sources that have one of their own, by number.

        Raises:
            ConfigError: if data.max_prompt_tokens leaves no room for a completion.
        """
        self._config, self.sources, self._processor = config, sources, processor
        self._supervised, self._tell, self._num_reported = supervised, tell, 0
        self._drops = config.data.on_broken == "drop"
        self._remedy = REMEDY if config.preferences is None else PAIR_REMEDY
        longest = config.data.max_prompt_tokens or 0
        if not supervised and longest + config.rollout.max_tokens > config.generator.max_model_len:
            raise ConfigError(
                f"data.max_prompt_tokens={longest} and rollout.max_tokens={config.rollout.max_tokens} "
                f"together exceed generator.max_model_len={config.generator.max_model_len}"
            )
        self.stream = SampleStream(
            [source.rows for source in sources.train],
            lambda row, index: self._prepare(row, sources.train[index].name),
            weights=[source.options.weight for source in sources.train],
            batch_size=batch_size(config, supervised=supervised),
            seed=config.run.seed,
            num_workers=config.data.num_workers,
            prefetch_steps=config.data.prefetch_steps,
            on_broken=self._broken if self._drops else None,
            owns=owns,
            orders=orders,
            adaptive=frozenset(i for i, s in enumerate(sources.train) if s.options.sampler.is_adaptive),
        )
        self.num_heldout_dropped = 0
        self._heldout: list[list[Sample]] = [[] for _ in sources.heldout]
        self._heldout_rows = [_unread(source) for source in sources.heldout]

    def close(self) -> None:
        """Stop the threads."""
        self.stream.close()

    def train_row(self, source: int, number: int) -> Prepared:
        """A training row by the numbers of its source and of itself, as the stream would prepare it."""
        chosen = self.sources.train[source]
        rows = numbered(chosen.rows, "data.train")
        return self._attempt(lambda: self._prepare(rows[number], chosen.name))

    def heldout(self, num_samples: int | None) -> list[Sample]:
        """The first num_samples held-out samples of each source, all if None, one source after the other.

        They are resolved once and kept. Rows that are too long are left out and counted.
        """
        for samples, rows in zip(self._heldout, self._heldout_rows, strict=True):
            while num_samples is None or len(samples) < num_samples:
                most = HELDOUT_BATCH if num_samples is None else num_samples - len(samples)
                if not (batch := list(islice(rows, most))):
                    break
                with ThreadPoolExecutor(self._config.data.num_workers) as executor:
                    prepared = list(executor.map(self._prepare_heldout, batch))
                found = [each.sample for each in prepared if each.sample is not None]
                self.num_heldout_dropped += len(prepared) - len(found)
                samples += found
        return [sample for samples in self._heldout for sample in samples[:num_samples]]

    def _prepare_heldout(self, row: tuple[ReadFn, str]) -> Prepared:
        read, source = row
        return self._attempt(lambda: self._prepare(read(), source))

    def _attempt(self, prepare: Callable[[], Prepared]) -> Prepared:
        """What `prepare` returns; for a broken row none, where data.on_broken drops it."""
        try:
            return prepare()
        except PromptTooLong:
            raise
        except DataError as error:
            if not self._drops:
                raise
            self._broken(str(error))
            return Prepared(None, reason=str(error), is_broken=True)

    def _broken(self, reason: str) -> None:
        """Report a dropped row, of the first few; all are counted."""
        self._num_reported += 1
        if self._num_reported <= MAX_REPORTED:
            last = "; further ones are only counted" if self._num_reported == MAX_REPORTED else ""
            self._tell("row_dropped", f"a row is left out (data.on_broken=drop): {reason}{last}")

    def _prepare(self, row: Row, source: str) -> Prepared:
        """A row as a sample whose prompt leaves room for the answer."""
        data = self._config.data
        policy = "error" if data.overlong == "keep" else data.overlong
        fitted = fit_row(row, self._processor.num_tokens, self._room(row), policy, self._remedy)
        if fitted.row is None:
            return Prepared(None, reason=fitted.reason)
        sample = replace(self._processor.sample(fitted.row), source=source)
        if self._supervised and self._config.preferences is not None:
            completions_of(sample, self._processor, self._config.preferences)  # refuses what is no pair
        is_long = data.max_prompt_tokens is not None and len(sample.prompt.token_ids) > data.max_prompt_tokens
        return Prepared(sample, fitted.num_dropped_turns, is_overlong=is_long)

    def _room(self, row: Row) -> int:
        """Most tokens of this row's prompt."""
        preferences = self._config.preferences
        if not self._supervised:
            return prompt_room(self._config, self._config.rollout.max_tokens)
        if preferences is None:
            answer = len(self._processor.encode_target(row.get("target") or ""))
            return prompt_room(self._config, answer)
        answer, other = (
            len(encoded_completion(row.get(key) or "", self._processor, preferences))
            for key in ("target", "rejected")
        )
        both = self._config.trainer.max_tokens_per_micro_batch - answer - other
        return min(both, prompt_room(self._config, max(answer, other)))


def _unread(source: Source) -> Iterator[tuple[ReadFn, str]]:
    """What reads each row, which can take long and be done side by side, and the source's name."""
    rows = source.rows
    if isinstance(rows, StreamedRows):
        yield from ((lambda row=row: row, source.name) for row in rows)
    else:
        yield from ((partial(rows.__getitem__, number), source.name) for number in range(len(rows)))


def numbered(rows: Rows | StreamedRows, key: str) -> Rows:
    """Rows that can be had by number.

    Raises:
        ConfigError: for a streamed source.
    """
    if isinstance(rows, StreamedRows):
        raise ConfigError(
            f"{key}.options.streaming: rows of a streamed source have no numbers, which pass rates and "
            f"{key}.sampler need; set streaming: false, or leave the sampler out"
        )
    return rows


def batch_size(config: Config, *, supervised: bool) -> int:
    """Rows of a step."""
    if not supervised:
        return config.rollout.prompts_per_step
    return config.sft.batch_size if config.preferences is None else config.preferences.batch_size


def require_targets(samples: Sequence[Sample], *, preferences: bool = False) -> None:
    """Raise DataError for a sample without a target, or, but for preferences, one that is a bad example."""
    for sample in samples:
        if not sample.target:
            raise DataError(
                f"sample {sample.id!r} has no 'target': supervised training needs the assistant's text"
            )
        if sample.label is False and not preferences:
            raise DataError(
                f"sample {sample.id!r} has the label false, so its completion is not one to imitate; leave "
                "such rows out, or train with `vlrl dpo` and preferences.loss=kto"
            )


def prompt_room(config: Config, num_answer_tokens: int) -> int:
    """Longest prompt that is used and leaves room for an answer, in tokens."""
    room, longest = config.generator.max_model_len - num_answer_tokens, config.data.max_prompt_tokens
    return room if longest is None or config.data.overlong == "keep" else min(room, longest)


def _open(
    configs: Sequence[DatasetConfig], names: Sequence[str], key: str, others: Sequence[RewardConfig]
) -> list[Source]:
    """Sources, opened; one that is a benchmark has its scorer where `others` has no reward."""
    keys = [key] if len(configs) == 1 else [f"{key}.{i}" for i in range(len(configs))]
    opened = [open_source(config, section) for config, section in zip(configs, keys, strict=True)]
    return [
        Source(name, with_rewards(config, rows, others), rows)
        for name, config, rows in zip(names, configs, opened, strict=True)
    ]


def _names(configs: Sequence[DatasetConfig]) -> list[str]:
    """Each source's alias, or the last part of its name; namesakes are numbered."""
    shorts = [config.alias or Path(label_of(config.name)).name for config in configs]
    namesakes = [shorts[:number].count(short) for number, short in enumerate(shorts)]
    return [f"{short}#{n + 1}" if n else short for short, n in zip(shorts, namesakes, strict=True)]
