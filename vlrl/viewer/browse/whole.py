"""One rollout whole, as the page shows it: images, turns and what was done in them, tokens with numbers."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from vlrl.viewer.browse.light import text_of
from vlrl.viewer.gestures import read_gesture
from vlrl.viewer.strips import new_media, split_deed

MAX_TEXT = 200_000
"""Characters of one text."""
MAX_TOKENS = 200_000
"""Tokens of a ledger."""
DIGITS = 4
"""Decimals of a token's numbers."""

Record = Mapping[str, Any]


def whole_rollout(record: Record, run_dir: Path) -> dict[str, Any]:
    """Everything of a rollout that the page shows.

    Args:
        record: from `vlrl.tracking.rollouts.read.record_of`.
        run_dir: folder of its media.

    Returns:
        JSON: what the record has under the same names; `messages` as {role, text}; `media` with the size of a
        frame and `missing`; `turns` with `shown`, the media that are new in it, and `gesture`; `ledgers` as
        columns (`ratio` is trainer - sampler log-probability).
    """
    kept = (
        *("step", "group", "group_index", "sample_id", "source", "agent", "refusal", "replayed", "outcome"),
        *("failure", "reward", "advantage", "num_turns", "num_generated_tokens", "weight_version"),
        *("duration_s", "episode_return", "trunk", "num_shared_turns", "parts", "explanations"),
        *("info", "position"),
    )
    return {
        **{name: _plain(record.get(name)) for name in kept},
        "messages": [
            _message(message) for message in record.get("messages") or [] if isinstance(message, dict)
        ],
        "answer": None if record.get("answer") is None else _cut(_spelt(record["answer"])),
        "metadata": _spelt(record.get("metadata") or ""),
        "env": _spelt(record.get("env") or ""),
        "completion": _cut(record.get("completion") or ""),
        "media": [_medium(medium, run_dir) for medium in record.get("media") or []],
        "turns": [_turn(record, index) for index in range(len(record.get("turns") or []))],
        "end": (record.get("end") or {}).get("media") or [],
        "ledgers": [_ledger(ledger) for ledger in record.get("ledgers") or []],
    }


def _turn(record: Record, index: int) -> dict[str, Any]:
    turns = record["turns"]
    turn, before = turns[index], turns[index - 1] if index else None
    is_new_ledger = before is not None and turn["ledger"] != before["ledger"]
    thought, deed = split_deed(turn["text"] or "")
    return {
        "ledger": turn["ledger"],
        "is_new_ledger": is_new_ledger,
        "context": turn["context"],
        "action": turn["action"],
        "thought": _cut(thought),
        "deed": _cut(deed),
        "reward": _plain(turn["reward"]),
        "advantage": _plain(turn["advantage"]),
        "invalid": bool(turn["invalid"]),
        "finished": bool(turn.get("finished", True)),
        "shown": new_media(record, index, is_new_ledger),
        "info": {str(name): _cut(_spelt(value)) for name, value in (turn.get("info") or {}).items()},
        "gesture": _gesture(turn.get("info") or {}),
    }


def _gesture(info: Mapping[str, Any]) -> dict[str, Any] | None:
    """A turn's marks on the screen before it, with arrows as points of SVG."""
    gesture = read_gesture(info)
    if gesture is None:
        return None
    return {
        "kind": gesture.kind,
        "points": [list(point) for point in gesture.points],
        "rings": gesture.rings,
        "towards": list(gesture.towards),
        "words": gesture.words,
        "typed": gesture.typed,
        "widget": gesture.widget,
        "box": list(gesture.box) if gesture.box else None,
    }


def _medium(medium: Record, run_dir: Path) -> dict[str, Any]:
    frames = max(1, int(medium.get("num_frames") or 1))
    width, height = int(medium.get("width") or 0), int(medium.get("height") or 0)
    original = medium.get("original_size") or [height, width // frames]
    sha256 = str(medium.get("sha256", ""))
    return {
        "sha256": sha256,
        "kind": medium.get("kind", "image"),
        "frames": frames,
        "width": width // frames,
        "height": height,
        "original": [int(original[1]), int(original[0])],
        "times": [round(float(t), 3) for t in medium.get("timestamps_s") or []],
        "missing": not (run_dir / "media" / f"{sha256}.png").is_file(),
    }


def _ledger(ledger: Record) -> dict[str, Any]:
    """Columns of a ledger, null where nothing is known; cut at MAX_TOKENS."""
    size = min(len(ledger["token_ids"]), MAX_TOKENS)
    sampler = _numbers(ledger.get("sampler_logprobs")) or [None] * size
    trainer = _numbers(ledger.get("trainer_logprobs"))
    mask = [int(bool(each)) for each in ledger["loss_mask"][:MAX_TOKENS]]
    ratio = [
        None if t is None or s is None else round(t - s, DIGITS)
        for t, s in zip(trainer or [None] * size, sampler, strict=True)
    ]
    return {
        "texts": list(ledger["token_texts"][:MAX_TOKENS]),
        "ids": list(ledger["token_ids"][:MAX_TOKENS]),
        "mask": mask,
        "logprob": [value if here else None for value, here in zip(sampler, mask, strict=True)],
        "ratio": ratio if any(value is not None for value in ratio) else [],
        "version": list((ledger.get("weight_versions") or [])[:MAX_TOKENS]),
        "entropy": _numbers(ledger.get("entropies")),
        "advantage": _numbers(ledger.get("advantages")),
        "num_left_out": max(0, len(ledger["token_ids"]) - MAX_TOKENS),
    }


def _numbers(values: Sequence[float | None] | None) -> list[float | None]:
    """Rounded; an empty list where no number is known."""
    out = [
        None if v is None or not math.isfinite(v) else round(v, DIGITS) for v in (values or [])[:MAX_TOKENS]
    ]
    return out if any(value is not None for value in out) else []


def _message(message: Record) -> dict[str, str]:
    return {"role": str(message.get("role", "")), "text": _cut(text_of(message.get("content")))}


def _plain(value: Any) -> Any:
    """Numbers that JSON has none for as null."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {str(name): _plain(each) for name, each in value.items()}
    return _cut(value) if isinstance(value, str) else value


def _spelt(value: Any) -> str:
    """A row's value as text."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=1, default=str)


def _cut(text: str) -> str:
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}… ({len(text) - MAX_TEXT} characters more)"
