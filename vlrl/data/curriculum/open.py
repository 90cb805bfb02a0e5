"""A config's samplers made into objects: rate files found and held against data, model and rewards."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from vlrl.config import Config
from vlrl.config.data import DatasetConfig, SamplerConfig
from vlrl.data.curriculum.choice import AdaptiveSource, RowChoices
from vlrl.data.curriculum.evidence import Evidence
from vlrl.data.curriculum.fingerprints import data_fingerprint, model_fingerprint
from vlrl.data.curriculum.rate_file import SUFFIX, RateFile, RateHeader, read_rates
from vlrl.data.curriculum.weighted import RowWeights, StaticOrder
from vlrl.data.mixture import Mixture
from vlrl.data.order import Order
from vlrl.data.rows import Rows
from vlrl.data.run_data import Source, numbered
from vlrl.data.stream import source_seed
from vlrl.errors import ConfigError, InternalError
from vlrl.rollout.buffer import BufferLimits
from vlrl.scoring.compose import ComposedReward
from vlrl.types import IntArray


def without_samplers(config: Config) -> Config:
    """The config of what does not train: rows in shuffled epochs, and no rate file is looked for."""
    uniform = {"sampler": SamplerConfig()}
    train = [source.model_copy(update=uniform) for source in config.data.train]
    return config.model_copy(update={"data": config.data.model_copy(update={"train": train})})


def static_orders(config: Config, sources: Sequence[Source]) -> dict[int, Order]:
    """Orders of the sources whose rates stay those of the start model, by number.

    Raises:
        ConfigError: for a file of rates that is not there, or is of other rows, another model or reward.
    """
    orders: dict[int, Order] = {}
    for index, (source, key) in enumerate(zip(sources, keys_of(sources), strict=True)):
        if not source.options.sampler.is_static:
            continue
        rates = start_rates(config, source, key)
        weights, unusable = RowWeights(source.options.sampler, key), np.flatnonzero(rates.unusable)
        known = np.nan_to_num(rates.rates)  # NaN is of unusable rows alone, which get no weight
        orders[index] = StaticOrder(known, unusable, weights, source_seed(config.run.seed, index))
    return orders


@dataclass(frozen=True, slots=True)
class Samplers:
    """The training sources' samplers.

    Attributes:
        orders: those that are static, by number of the source.
        rows: the driver's part of those that are adaptive; None if there is none.
    """

    orders: Mapping[int, Order]
    rows: RowChoices | None

    @classmethod
    def open(cls, config: Config, sources: Sequence[Source], reward: ComposedReward | None) -> Samplers:
        """Find what samplers name, and hold it against the config.

        Args:
            config: the whole config.
            sources: those to train on.
            reward: of which each source's first part passes; None in supervised training.

        Raises:
            ConfigError: as for `static_orders`; for an adaptive sampler without rewards, for rows without
                numbers, or without the key of pool_by.
        """
        orders = static_orders(config, sources)
        adaptive: list[AdaptiveSource | None] = [None] * len(sources)
        for index, (source, key) in enumerate(zip(sources, keys_of(sources), strict=True)):
            if not source.options.sampler.is_adaptive:
                continue
            if reward is None:
                raise ConfigError(
                    f"{key}.sampler.name={source.options.sampler.name} with {key}.sampler.adaptive=true "
                    "follows the completions that training generates, and `vlrl sft` generates none; set "
                    "adaptive=false and start_rates to a file of `vlrl data rate`, or leave the sampler out"
                )
            adaptive[index] = _adaptive(config, index, source, key, reward.first_part(source.name))
        if not any(adaptive):
            return cls(orders, None)
        mixture = Mixture([source.options.weight for source in sources], config.run.seed)
        delay = BufferLimits.of(config).num_credits
        return cls(orders, RowChoices(adaptive, mixture, delay, config.data.pass_threshold))


def start_rates(config: Config, source: Source, key: str) -> RateFile:
    """The rates that a source's sampler names.

    Raises:
        ConfigError: for what they do not belong to.
    """
    path = source.options.sampler.start_rates
    if path is None:
        raise InternalError(f"{key}.sampler has no start_rates")
    rows, what = numbered(source.rows, key), f"{key}.sampler.start_rates={path}"
    rates = read_rates(path)
    expected = header_of(config, source.options, rows, rates.header.num_samples)
    again = "run `vlrl data rate CONFIG` again"
    for part, mine, theirs, where in (
        ("num_rows", rates.header.num_rows, expected.num_rows, f"{key}.name={source.options.name} has"),
        ("data", rates.header.data, expected.data, f"{key}.name={source.options.name} has the fingerprint"),
        ("model", rates.header.model, expected.model, f"model.path={config.model.path} has the fingerprint"),
        ("reward", rates.header.reward, expected.reward, "the first of rewards is"),
        ("pass_threshold", rates.header.pass_threshold, expected.pass_threshold, "data.pass_threshold is"),
    ):
        if mine != theirs:
            raise ConfigError(f"{what} was made with {part} {mine}, but {where} {theirs}; {again}")
    if rates.missing.size:
        raise ConfigError(
            f"{what}: {rates.missing.size} of {rates.header.num_rows} rows of "
            f"{key}.name={source.options.name} have no rate, the first is row {rates.missing[0]}; {again}, "
            "which asks only these"
        )
    return rates


def header_of(config: Config, options: DatasetConfig, rows: Rows, num_samples: int) -> RateHeader:
    """What rates of a source belong to under a config."""
    first = (options.rewards or config.rewards)[:1]
    if not first:
        raise ConfigError("rewards is empty, and a completion passes by the first reward; give one")
    reward = {"name": first[0].name.rpartition("/")[2], "options": first[0].options}
    sampling = {
        "temperature": config.rollout.temperature,
        "max_tokens": config.rollout.max_tokens,
        "seed": config.run.seed,
    }
    return RateHeader(
        data=data_fingerprint(rows),
        model=model_fingerprint(config.model.path),
        num_rows=len(rows),
        reward=json.dumps(reward, sort_keys=True, default=str),
        pass_threshold=config.data.pass_threshold,
        num_samples=num_samples,
        sampling=json.dumps(sampling, sort_keys=True),
    )


def rate_path(config: Config, options: DatasetConfig, header: RateHeader, folder: Path | None = None) -> Path:
    """Where the rates of a source are kept; `folder` is one in place of `rate_folder`."""
    return (folder or rate_folder(config, options)) / f"{Path(options.name).name}.{header.key}{SUFFIX}"


def rate_folder(config: Config, options: DatasetConfig) -> Path:
    """The folder of a source's file or folder; run.dir/rates for one that is neither."""
    place = Path(options.name)
    return place.absolute().parent if place.exists() else config.run.dir / "rates"


def rates_beside(config: Config, options: DatasetConfig, rows: Rows) -> list[tuple[Path, RateFile]]:
    """The files of rates that are kept of these rows, whatever the model and the reward.

    Raises:
        DataError: for a file that is damaged.
    """
    paths = sorted(rate_folder(config, options).glob(f"{Path(options.name).name}.*{SUFFIX}"))
    if not paths:
        return []
    known = data_fingerprint(rows)
    found = [(path, read_rates(path)) for path in paths]
    return [(path, rates) for path, rates in found if rates.header.data == known]


def keys_of(sources: Sequence[object]) -> list[str]:
    """The dotted key of each training source."""
    return ["data.train"] if len(sources) == 1 else [f"data.train.{i}" for i in range(len(sources))]


def _adaptive(config: Config, index: int, source: Source, key: str, reward: str) -> AdaptiveSource:
    options, rows = source.options.sampler, numbered(source.rows, key)
    rates = None if options.start_rates is None else start_rates(config, source, key)
    start = None if rates is None else (rates.passed.astype(np.float64), rates.scored.astype(np.float64))
    evidence = Evidence(
        len(rows),
        half_life=options.half_life * len(rows),
        prior_strength=options.prior_strength,
        pools=None if options.pool_by is None else _pools(rows, options.pool_by, key),
        start=start,
    )
    unusable = np.flatnonzero(rates.unusable) if rates is not None else np.zeros(0, np.int64)
    weights = RowWeights(options, key)
    return AdaptiveSource(evidence, weights, source_seed(config.run.seed, index), reward, unusable)


def _pools(rows: Rows, name: str, key: str) -> IntArray:
    """[N] number of the pool of each row, those with the same value of a key of the metadata."""
    numbers: dict[str, int] = {}
    pools = []
    for number in range(len(rows)):
        metadata = rows[number]["metadata"]
        if name not in metadata:
            raise ConfigError(
                f"{key}.sampler.pool_by={name}: row {number} of {key}.name has no {name!r} in its metadata, "
                f"but {', '.join(metadata) or 'nothing'}; name a key that all rows have, or leave pool_by out"
            )
        pools.append(numbers.setdefault(json.dumps(metadata[name], default=str), len(numbers)))
    return np.asarray(pools, np.int64)
