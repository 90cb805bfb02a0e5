"""Played episodes as rows to train on: one line of JSON each, its images beside it."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from vlrl.env_play.game import PlayedGame
from vlrl.environment.observe import digest_of, message_of, pixels_of
from vlrl.errors import DataError
from vlrl.processors.messages import message_of as text_message

FILE = "episodes.jsonl"


def save(game: PlayedGame, folder: Path) -> dict[str, Any]:
    """Add an ended episode to FOLDER/episodes.jsonl; a second time it is not added.

    Returns:
        id, path, num_rows: of the file, and is_new.

    Raises:
        DataError: if the episode is not over.
    """
    if not game.is_over:
        raise DataError("the episode is not over; only whole ones are demonstrations")
    folder.mkdir(parents=True, exist_ok=True)
    row, path = _row(game, folder), folder / FILE
    known = [json.loads(line)["id"] for line in path.read_text().splitlines()] if path.is_file() else []
    is_new = row["id"] not in known
    if is_new:
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
    return {"id": row["id"], "path": str(path), "num_rows": len(known) + is_new, "is_new": is_new}


def _row(game: PlayedGame, folder: Path) -> dict[str, Any]:
    """The episode with the last action as its target; images are written, and named by their content."""
    observations = [game.first, *(move.result.observation for move in game.moves[:-1])]
    messages = [text_message("system", game.env.system_prompt)] if game.env.system_prompt else []
    for observation, move in zip(observations, game.moves, strict=True):
        messages += [message_of(observation), text_message("assistant", move.action)]
    target = messages.pop()["content"][0]["text"]
    messages = [_on_disk(message, folder) for message in messages]
    said = hashlib.sha256(json.dumps([messages, target]).encode()).hexdigest()[:8]
    row = {
        "id": f"{game.name}/play/{game.seed}/{said}",
        "messages": messages,
        "target": target,
        "env": {"name": game.name, "options": game.options, "task": game.task, "seed": game.seed},
        "metadata": {
            "return": game.total,
            "success": game.success,
            "num_turns": len(game.moves),
            "rewards": [float(move.result.reward) for move in game.moves],
            "seen": [
                digest_of(shown) for shown in (*observations, game.observation)
            ],  # for `vlrl env replay`
        },
    }
    return {**row, "tools": [dict(tool) for tool in game.env.tools]} if game.env.tools else row


def _on_disk(message: dict[str, Any], folder: Path) -> dict[str, Any]:
    content = []
    for part in message["content"]:
        if part["type"] == "image":
            part = {**part, "image": _write(part["image"], folder)}
        elif part["type"] == "video":
            part = {**part, "video": [_write(frame, folder) for frame in part["video"]]}
        content.append(part)
    return {**message, "content": content}


def _write(image: Any, folder: Path) -> str:
    """Write an image unless it is there; its path relative to the folder."""
    pixels = np.ascontiguousarray(pixels_of(image))
    shape = str(pixels.shape).encode()
    name = f"media/{hashlib.sha256(shape + pixels.tobytes()).hexdigest()}.png"
    path = folder / name
    if not path.exists():
        path.parent.mkdir(exist_ok=True)
        aside = path.with_suffix(".part")
        Image.fromarray(pixels).save(aside, format="PNG")
        aside.rename(path)
    return name
