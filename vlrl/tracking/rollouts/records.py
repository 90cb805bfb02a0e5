"""Rollouts as JSON for people and tools: one line a trajectory, each image once as a PNG."""

from __future__ import annotations

import io
import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from vlrl.ledger import BoolArray, Credit, FloatArray, Ledger
from vlrl.protocols import Processor
from vlrl.tracking.rollouts.paths import media_path, run_dir_of, sound_path
from vlrl.tracking.rollouts.sound import HEIGHT, image_width, sound_image, wav_of
from vlrl.types import Group, Media, Sample, Trajectory

PNG_LEVEL = 2
"""Of zlib: a photograph takes a quarter of the time of the default, 6, and a sixth more bytes."""
LOGPROB_DIGITS = 6
"""Decimals kept of a log-probability or an advantage: a float32 near 1 has no more."""

MAX_INFO_CHARS = 2000
"""Kept of a text that an environment says of an action."""

SURROGATES = "backslashreplace"
"""Half a surrogate pair has no UTF-8; written as \\udXXX it is the same character to a JSON reader."""


def rollout_records(
    groups: Sequence[Group], processor: Processor, *, phase: str, step: int
) -> list[dict[str, Any]]:
    """One JSON-ready dict per trajectory, in the order of the groups.

    Args:
        groups: scored or not; credits may be missing.
        processor: spells the tokens.
        phase: what the rollout was for: "before", "after", "train", …
        step: weight updates made before it.
    """
    return [
        sample_record(trajectory.sample)
        | played_record(group, index)
        | {"ledgers": [_ledger(ledger, processor) for ledger in trajectory.ledgers]}
        | {"phase": phase, "step": step}
        for group in groups
        for index, trajectory in enumerate(group.trajectories)
    ]


def images_of(groups: Iterable[Group]) -> list[Media]:
    """What the records of these groups mention, for `write_rollouts`."""
    return [medium for group in groups for t in group.trajectories for medium in (*t.media, *t.end_media)]


def write_rollouts(
    path: Path, records: Sequence[Mapping[str, Any]], media: Iterable[Media], append: bool = False
) -> None:
    """Write records as JSONL, and their images as media/<sha256>.png in the run's folder.

    Args:
        path: RUN/rollouts/NAME.jsonl, or any other file, whose folder then takes the place of the run's.
        records: from `rollout_records`.
        media: whatever the records mention, see `images_of`; repetitions are written once.
        append: add to the file; otherwise it is replaced whole, by a rename.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    write_images(run_dir_of(path), media)
    text = "".join(json.dumps(record, ensure_ascii=False, default=str) + "\n" for record in records)
    if append:
        with path.open("a", encoding="utf-8", errors=SURROGATES) as file:
            file.write(text)
        return
    aside = path.with_name(path.name + ".part")
    aside.write_text(text, encoding="utf-8", errors=SURROGATES)
    os.replace(aside, path)


def write_images(run_dir: Path, media: Iterable[Media]) -> None:
    """Write each distinct medium that is not there yet as media/<sha256>.png, an audio also as .wav."""
    for item in {m.sha256: m for m in media}.values():
        if not (run_dir / media_path(item)).exists():
            write_encoded(run_dir, _encoded(item))


def encoded_images(media: Iterable[Media]) -> dict[str, bytes]:
    """Each distinct medium as a PNG, an audio also as a WAV, by path in the run's folder."""
    files: dict[str, bytes] = {}
    for item in {m.sha256: m for m in media}.values():
        files |= _encoded(item)
    return files


def write_encoded(run_dir: Path, encoded: Mapping[str, bytes]) -> None:
    """Write those of `encoded_images` that are not there yet: a name is the hash of its content."""
    for name, data in encoded.items():
        path = run_dir / name
        if path.exists():
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        aside = path.with_name(path.name + ".part")
        aside.write_bytes(data)
        os.replace(aside, path)


def sample_record(sample: Sample) -> dict[str, Any]:
    """What was asked, JSON-ready."""
    return {
        "sample_id": sample.id,
        "messages": [_message(message) for message in sample.messages],
        "answer": _plain(sample.answer),
        "metadata": _plain(sample.metadata),
        "env": None if sample.env is None else _plain(asdict(sample.env)),
    }


def played_record(group: Group, index: int) -> dict[str, Any]:
    """A trajectory of a group, JSON-ready; all but its sample and its ledgers."""
    trajectory = group.trajectories[index]
    score = trajectory.score
    credit = group.credits[index] if index < len(group.credits) else None
    images = {medium.sha256: medium for medium in (*trajectory.media, *trajectory.end_media)}
    place = {sha256: index for index, sha256 in enumerate(images)}
    spans = [span for ledger in trajectory.ledgers for span in ledger.version_spans]
    return {
        "group_index": trajectory.group_index,
        "trunk": trajectory.trunk,
        "num_shared_turns": trajectory.num_shared,
        "completion": trajectory.completion,
        "outcome": trajectory.outcome,
        "failure": trajectory.failure,
        "reward": None if score is None else _number(score.total),
        "parts": {} if score is None else {name: _number(value) for name, value in score.parts.items()},
        "explanations": {} if score is None else dict(score.explanations),
        "episode_return": _number(trajectory.episode_return),
        "info": {name: _number(value) for name, value in trajectory.info.items()},
        "advantage": _mean_advantage(credit),
        "duration_s": _number(trajectory.duration_s, 3),
        "weight_version": spans[-1].version if spans else None,
        "turns": _turns(trajectory, credit, place),
        "end": {
            "seen": trajectory.end_seen,
            "media": [place[medium.sha256] for medium in trajectory.end_media],
        },
        "media": [_media(item) for item in images.values()],
    }


def _ledger(ledger: Ledger, processor: Processor) -> dict[str, Any]:
    return {
        "token_ids": ledger.token_ids.tolist(),
        "token_texts": processor.token_texts(ledger.token_ids),
        "loss_mask": ledger.loss_mask.astype(int).tolist(),
        "sampler_logprobs": [_number(value, LOGPROB_DIGITS) for value in ledger.sampler_logprobs],
    }


def _turns(trajectory: Trajectory, credit: Credit | None, place: Mapping[str, int]) -> list[dict[str, Any]]:
    """Every exchange; `ledger` is the index of the one that its spans are of, `media` are indices too."""
    turns = []
    for number, ledger in enumerate(trajectory.ledgers):
        media = iter(ledger.media)
        for turn in ledger.turns:
            part = slice(*turn.action)
            turns.append(
                {
                    "ledger": number,
                    "context": list(turn.context),
                    "action": list(turn.action),
                    "text": turn.text,
                    "finished": turn.finished,
                    "reward": _number(turn.reward),
                    "invalid": turn.invalid,
                    "state": turn.state,
                    "seen": turn.seen,
                    "form": turn.form,
                    "canvases": [_plain(asdict(canvas)) for canvas in turn.canvases],
                    "info": {name: _brief(value) for name, value in turn.info.items()},
                    "media": [place[medium.sha256] for medium in islice(media, turn.num_media)],
                    "advantage": None
                    if credit is None
                    else _mean_where(credit.advantages[number][part], credit.trained[number][part]),
                }
            )
    return turns


def _mean_advantage(credit: Credit | None) -> float | None:
    """Mean over the tokens that are trained."""
    if credit is None or not credit.advantages:
        return None
    return _mean_where(np.concatenate(credit.advantages), np.concatenate(credit.trained))


def _mean_where(values: FloatArray, chosen: BoolArray) -> float | None:
    return _number(values[chosen].mean(), LOGPROB_DIGITS) if chosen.any() else None


def _message(message: Mapping[str, Any]) -> dict[str, Any]:
    """Role and text; a medium is only named, its pixels are in `media`."""
    content = message["content"]
    if not isinstance(content, str):
        content = [
            {"type": "text", "text": part["text"]} if part["type"] == "text" else {"type": part["type"]}
            for part in content
        ]
    return {"role": message["role"], "content": content}


def _media(media: Media) -> dict[str, Any]:
    """What is said of a medium; sizes of an audio are those of its image."""
    (height, width), num_frames, original = media.size, len(media.frames), media.original_size
    if media.kind == "audio":
        height, width, num_frames = HEIGHT, image_width(media), 1
        original = (height, width)
    return {
        "sha256": media.sha256,
        "path": media_path(media),
        "width": width * num_frames,
        "height": height,
        "kind": media.kind,
        "num_frames": num_frames,
        "original_size": list(original),
        "coordinate_frame": media.coordinate_frame,
        "timestamps_s": list(media.timestamps_s),
        "fps": media.fps,
    }


def _plain(value: Any) -> Any:
    """A row's value as JSON keeps it: arrays as lists, tuples as lists, what is not a number as null."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _brief(value: Any) -> Any:
    """A plain value of an environment's info; a long text is cut."""
    value = _plain(value)
    return value[:MAX_INFO_CHARS] if isinstance(value, str) else value


def _number(value: float, digits: int | None = None) -> float | None:
    """A JSON number; JSON has none for infinity and not-a-number."""
    number = float(value)
    if not math.isfinite(number):
        return None
    return number if digits is None else round(number, digits)


def _encoded(media: Media) -> dict[str, bytes]:
    """The frames side by side, or the image of a sound and the sound itself, by path in the run's folder."""
    data, path = io.BytesIO(), media_path(media)
    is_audio = media.kind == "audio"
    pixels = sound_image(media) if is_audio else np.concatenate(list(media.frames), axis=1)
    Image.fromarray(pixels).save(data, format="PNG", compress_level=PNG_LEVEL)
    return {path: data.getvalue(), **({sound_path(path): wav_of(media)} if is_audio else {})}
