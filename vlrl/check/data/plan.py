"""The plan of a check: which sources and rows it reads, from a config or from a bare data file."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path

import yaml

from vlrl.check.data.records import CheckedSource, Job
from vlrl.check.splits import Split, Splits
from vlrl.config import Config, load_config, parse_config
from vlrl.config.paths import looks_like_a_folder
from vlrl.config.strict_yaml import load_yaml
from vlrl.data import open_dataset, with_rewards
from vlrl.errors import ConfigError
from vlrl.scoring.compose import ComposedReward

NO_MODEL = "/none given"
"""model.path of the config that is made up around a bare data file; absolute, so it is kept as it is."""


def read_target(target: str, overrides: Sequence[str], model: str | None = None) -> Config:
    """The config named by TARGET, or one made up around it if TARGET is data.

    Args:
        target: a YAML config, or anything that data.train.name takes.
        overrides: section.key=value; for data also with its own keys, such as shape=llava.
        model: instead of model.path.

    Raises:
        ConfigError: for a target that does not exist, or a wrong key.
    """
    given = [*overrides, *([f"model.path={model}"] if model else [])]
    path = Path(target)
    if path.suffix in (".yaml", ".yml") and not _lists_data_files(path):
        return load_config(target, given)
    if not path.exists() and "*" not in target and (path.suffix or looks_like_a_folder(target)):
        near = difflib.get_close_matches(path.name, [p.name for p in path.parent.glob("*")], n=1)
        hint = f"; did you mean {path.parent / near[0]}?" if near else f" (looked in {Path.cwd()})"
        raise ConfigError(f"{target} does not exist{hint}")
    tree = {"model": {"path": NO_MODEL}, "data": {"train": {"name": target}}}
    return parse_config(tree, source=target, overrides=[_of_data(override) for override in given])


def plan_check(
    config: Config,
    *,
    split: Splits = "all",
    limit: int | None = None,
    rewards: bool = True,
    warm_cache: bool = False,
) -> tuple[Job, list[str]]:
    """What the workers are to do, and what cannot be checked.

    Args:
        config: of `read_target`.
        split: which rows.
        limit: at most so many rows of every source.
        rewards: dry-run them.
        warm_cache: keep the resolved media for the training that follows.

    Raises:
        ConfigError: for a split without rows, or a reward that does not exist.
        DataError: for a source that cannot be opened.
    """
    chosen: list[Split] = ["train", "eval"] if split == "all" else [split]
    sources = [source for name in chosen for source in _sources(config, name, limit)]
    if not sources:
        raise ConfigError("--split eval: data.eval names no rows")
    for each in (config.rewards, *(source.config.rewards for source in sources)):
        if each and rewards:
            ComposedReward(each)  # a wrong name shows before any row is read
    with_model, note = _model_is_there(config)
    if not warm_cache:
        config = config.model_copy(update={"media": config.media.model_copy(update={"cache_gib": 0.0})})
    return Job(config, tuple(sources), with_model, rewards), [note] if note else []


def _lists_data_files(path: Path) -> bool:
    """True for a YAML file that lists data, as VLM-R1 and LLaVA have them, and is not a config."""
    if not path.is_file():
        return False
    try:
        tree = load_yaml(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError):
        return False  # whoever reads it next says what is wrong
    return isinstance(tree, dict) and "datasets" in tree and not tree.keys() & Config.model_fields.keys()


def _sources(config: Config, split: Split, limit: int | None) -> list[CheckedSource]:
    configs = config.data.train if split == "train" else config.data.eval
    out = []
    for number, each in enumerate(configs):
        section = f"data.{split}.{number}" if len(configs) > 1 else f"data.{split}"
        rows = open_dataset(each, section)
        scored = with_rewards(each, rows, config.rewards if split == "train" else ())
        counts = [len(rows), each.limit, limit]
        out.append(CheckedSource(split, section, scored, min(count for count in counts if count is not None)))
    return out


def _model_is_there(config: Config) -> tuple[bool, str]:
    path = config.model.path
    if path == NO_MODEL:
        return False, "tokens are not counted without a model: give one with --model"
    if looks_like_a_folder(path) and not Path(path).is_dir():
        return False, (
            f"tokens are not counted and prompts not rendered: model.path={path!r} does not exist yet; "
            "name another of its family with --model"
        )
    return True, ""


def _of_data(override: str) -> str:
    """shape=llava is data.train.shape=llava where there is nothing but data."""
    key = override.partition("=")[0]
    sections = {*Config.model_fields}
    return override if key.partition(".")[0] in sections else f"data.train.{override}"
