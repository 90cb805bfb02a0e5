"""An old run's completions under another reward, or the same one with other options: what changes."""

from __future__ import annotations

import asyncio
import json
import math
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from vlrl.check.rescore.records import read_strictly
from vlrl.check.rewards.result import shortened
from vlrl.config import load_config
from vlrl.config.options import ScoringConfig
from vlrl.coordinates import Canvas
from vlrl.data import open_dataset
from vlrl.errors import ConfigError, DataError
from vlrl.foreign.failure import Failure
from vlrl.scoring.execute import Executor, ScoringRequest
from vlrl.scoring.functions import CONTEXT_NAMES, RewardFunction
from vlrl.tracking.rollouts.paths import run_dir_of, sound_path
from vlrl.tracking.rollouts.sound import samples_of
from vlrl.types import Media, Prompt, Sample

NUM_CHANGED = 20
"""Rows with the largest change that are kept."""
_NOT_KEPT = ("trajectory", "turns")
_EQUAL = 1e-9


def options_in(config: Path, reward: str) -> dict[str, Any]:
    """The options that a run's config gives a reward; none if it does not use it.

    Raises:
        ConfigError: for a config that cannot be read, or that uses it twice.
    """
    loaded = load_config(config)
    own = [each for source in loaded.data.train for each in source.rewards or ()]
    found = {
        json.dumps(each.options, sort_keys=True, default=str): each.options
        for each in (*loaded.rewards, *own)
        if each.name == reward
    }
    if len(found) > 1:
        raise ConfigError(f"{config} uses {reward!r} with different options: give the ones meant by --option")
    return dict(next(iter(found.values()), {}))


def rescore(
    function: RewardFunction, path: Path, config: Path | None = None, limit: int | None = None
) -> dict[str, Any]:
    """Score a rollouts file again.

    Args:
        function: the reward.
        path: a run's folder, or a file of its rollouts of any version.
        config: the run's, whose data gives the metadata that files of older versions lack.
        limit: completions at most.

    Returns:
        a JSON-ready summary: means, correlation, counts, and the rows that change most.

    Raises:
        ConfigError: for a reward that wants what a rollouts file does not keep.
        DataError: for a file without completions.
    """
    records = read_strictly(path)[:limit]
    _require_kept(function, records, path, config)
    metadata = _metadata(records, config)
    requests = [_request(function, record, path, metadata) for record in records]
    executor = Executor([function], ScoringConfig())
    try:
        results = asyncio.run(executor.run(requests))
    finally:
        executor.close()
    rows, failed = [], []
    for record, result in zip(records, results, strict=True):
        if isinstance(result, Failure):
            failed.append({**_named(record), "why": result.reason})
        elif result[1]:
            rows.append({**_named(record), "old": _old(record, function.label), "new": result[0]})
    compared = [row for row in rows if row["old"] is not None]
    changed = [row for row in compared if abs(row["new"] - row["old"]) > _EQUAL]
    changed.sort(key=lambda row: -abs(row["new"] - row["old"]))
    is_part = any(function.label in record.get("parts", {}) for record in records)
    return {
        "reward": function.source.name,
        "options": dict(function.source.options),
        "file": str(path),
        "old": f"the part {function.label!r}" if is_part else "the total reward",
        "num_rows": len(records),
        "num_scored": len(rows),
        "num_compared": len(compared),
        "num_changed": len(changed),
        "num_failed": len(failed),
        "old_mean": _mean([row["old"] for row in compared]),
        "new_mean": _mean([row["new"] for row in rows]),
        "correlation": _correlation(compared),
        "num_pairs_turned": _pairs_turned(compared),
        "changed": changed[:NUM_CHANGED],
        "failed": failed[:NUM_CHANGED],
    }


def _require_kept(
    function: RewardFunction, records: Sequence[Mapping[str, Any]], path: Path, config: Path | None
) -> None:
    name = function.source.name
    for each in _NOT_KEPT:
        if function.wants(each) and each in function.wanted:
            raise ConfigError(f"reward {name!r} wants {each!r}, which a rollouts file does not keep")
    media = [medium for record in records for medium in record.get("media", ())]
    if function.wanted & {"canvases", "media", "sample"} and any("original_size" not in m for m in media):
        raise ConfigError(
            f"reward {name!r} looks at images, and {path} was written before their original sizes were "
            "kept: generate the completions again with vlrl rollout"
        )
    if function.required and config is None and any("metadata" not in record for record in records):
        raise ConfigError(
            f"reward {name!r} needs {', '.join(sorted(function.required))}, and {path} was written before "
            "metadata was kept: give the run's config with --config, and the rows are read from its data"
        )


def _metadata(records: Sequence[Mapping[str, Any]], config: Path | None) -> dict[str, Mapping[str, Any]]:
    """Sample id → metadata from the run's data, for records that have none of their own."""
    missing = {str(record["sample_id"]) for record in records if "metadata" not in record}
    if not missing or config is None:
        return {}
    loaded = load_config(config)
    found: dict[str, Mapping[str, Any]] = {}
    for split in ("train", "eval"):
        for number, source in enumerate(getattr(loaded.data, split)):
            rows = open_dataset(source, f"data.{split}.{number}")
            for index in range(len(rows)):
                if str((row := rows[index])["id"]) in missing:
                    found.setdefault(str(row["id"]), row.get("metadata", {}))
    if lost := sorted(missing - found.keys()):
        raise DataError(f"sample {lost[0]!r} is not in the data of {config}: is it the config of this run?")
    return found


def _request(
    function: RewardFunction,
    record: Mapping[str, Any],
    path: Path,
    metadata: Mapping[str, Mapping[str, Any]],
) -> ScoringRequest:
    own = record.get("metadata", metadata.get(str(record.get("sample_id")), {}))
    context = {key: value for key, value in own.items() if function.wants(key)}
    for name in CONTEXT_NAMES & function.wanted:
        if function.wants(name):
            context[name] = _given(name, record, own, path)
    return ScoringRequest(0, str(record["completion"]), record.get("answer"), context)


def _given(name: str, record: Mapping[str, Any], metadata: Mapping[str, Any], path: Path) -> Any:
    """What a reward asks for by name, from a record."""
    if name == "prompt":
        return record.get("messages", ())
    if name == "num_tokens":
        return len(_generated_ids(record))
    if name == "completion_ids":
        return _generated_ids(record)
    if name in ("step", "episode_return"):
        return record.get(name, 0)
    if name == "success":
        return bool(record.get("info", {}).get("success", False))
    if name == "canvases":
        return tuple(_canvas(medium) for medium in record.get("media", ()))
    media = tuple(_medium(medium, path) for medium in record.get("media", ()))
    if name == "media":
        return media
    asked = [media[index] for turn in record.get("turns", ())[:1] for index in turn["media"]]
    return _sample(record, metadata, tuple(asked))


def _generated_ids(record: Mapping[str, Any]) -> list[int]:
    """Every token that the policy generated."""
    return [
        token
        for ledger in record.get("ledgers", ())
        for token, generated in zip(ledger["token_ids"], ledger["loss_mask"], strict=True)
        if generated
    ]


def _canvas(medium: Mapping[str, Any]) -> Canvas:
    height, width = medium["original_size"]
    size = (medium["height"], medium["width"] // medium["num_frames"])
    return Canvas((height, width), size, medium["coordinate_frame"])


def _medium(medium: Mapping[str, Any], path: Path) -> Media:
    """The frames stand side by side in one PNG; a sound in a WAV file beside its image."""
    is_audio = medium["kind"] == "audio"
    file = run_dir_of(path) / (sound_path(medium["path"]) if is_audio else medium["path"])
    if not file.is_file():
        raise DataError(f"{file} is missing: a rollouts file goes with the media folder of its run")
    if is_audio:
        frames = samples_of(file.read_bytes())
    else:
        with Image.open(file) as image:
            pixels = np.asarray(image.convert("RGB"))
        frames = np.stack(np.split(pixels, medium["num_frames"], axis=1))
    return Media(
        kind=medium["kind"],
        sha256=medium["sha256"],
        frames=frames,
        original_size=(0, 0) if is_audio else _canvas(medium).original_size,
        grid_thw=(1 if is_audio else len(frames), 1, 1),
        num_tokens=0,
        timestamps_s=tuple(medium["timestamps_s"]),
        fps=medium["fps"],
        coordinate_frame=medium["coordinate_frame"],
    )


def _sample(record: Mapping[str, Any], metadata: Mapping[str, Any], media: tuple[Media, ...]) -> Sample:
    turns, ledgers = record.get("turns", ()), record.get("ledgers", ())
    ids = ledgers[0]["token_ids"][slice(*turns[0]["context"])] if turns else []
    prompt = np.asarray(ids, dtype=np.int64)
    positions = np.tile(np.arange(len(prompt)), (3, 1))
    return Sample(
        id=str(record.get("sample_id")),
        messages=tuple(record.get("messages", ())),
        media=media,
        prompt=Prompt(prompt, prompt, positions, len(prompt)),
        answer=record.get("answer"),
        metadata=metadata,
    )


def _named(record: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "sample": str(record.get("sample_id")),
        "step": record.get("step"),
        "group_index": record.get("group_index"),
        "answer": shortened(str(record.get("answer")), 80),
        "completion": shortened(str(record["completion"]), 160),
    }


def _old(record: Mapping[str, Any], label: str) -> float | None:
    """What the run logged for the reward of this name, else its total; None if it could not be scored."""
    value = record.get("parts", {}).get(label, record.get("reward"))
    return None if value is None else float(value)


def _mean(values: Sequence[float]) -> float | None:
    return statistics.fmean(values) if values else None


def _correlation(rows: Sequence[Mapping[str, Any]]) -> float | None:
    """Pearson's; None where either does not vary."""
    old, new = [row["old"] for row in rows], [row["new"] for row in rows]
    if len(rows) < 2 or max(old) - min(old) < _EQUAL or max(new) - min(new) < _EQUAL:
        return None
    value = statistics.correlation(old, new)
    return value if math.isfinite(value) else None


def _pairs_turned(rows: Sequence[Mapping[str, Any]]) -> int:
    """Pairs of one group's completions that the new score puts in the opposite order: what training feels."""
    groups: dict[tuple[str, Any], list[Mapping[str, Any]]] = {}
    for row in rows:
        groups.setdefault((row["sample"], row["step"]), []).append(row)
    return sum(
        (a["old"] - b["old"]) * (a["new"] - b["new"]) < 0
        for members in groups.values()
        for place, a in enumerate(members)
        for b in members[place + 1 :]
    )
