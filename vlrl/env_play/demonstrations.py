"""Played episodes as rows to train on: one line of JSON each, its images beside it."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from vlrl.env_play.game import PlayedGame
from vlrl.environment.observe import digest_of, message_of, pixels_of
from vlrl.errors import ConfigError, DataError
from vlrl.processors.messages import message_of as text_message
from vlrl.registry import resolve

FILE = "episodes.jsonl"
ATTEMPTS_PER_EPISODE = 4
"""Seeds that are tried for each episode that is wanted: most of MiniWoB++'s tasks have no oracle."""


class DemonstrationFile:
    """FOLDER/episodes.jsonl, to which ended episodes are added, each once."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.path = folder, folder / FILE
        lines = self.path.read_text(encoding="utf-8").splitlines() if self.path.is_file() else []
        self._ids = {json.loads(line)["id"] for line in lines}

    def __len__(self) -> int:
        """Number of rows."""
        return len(self._ids)

    def add(self, game: PlayedGame) -> dict[str, Any]:
        """Add the game's episode if it is not there.

        Returns:
            id, path, num_rows: of the file, and is_new.

        Raises:
            DataError: if the episode is not over.
        """
        if not game.is_over:
            raise DataError("the episode is not over; only whole ones are demonstrations")
        row = _row(game, self.folder)
        is_new = row["id"] not in self._ids
        if is_new:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
            self._ids.add(row["id"])
        return {"id": row["id"], "path": str(self.path), "num_rows": len(self), "is_new": is_new}


def demonstrate(
    name: str,
    options: Mapping[str, Any],
    task: Mapping[str, Any],
    *,
    num: int,
    folder: Path,
    split: str = "train",
    seed: int = 0,
    max_turns: int = 64,
    on_episode: Callable[[int], None] = lambda num_done: None,
) -> dict[str, Any]:
    """Let an environment's oracle play, and add the episodes that it brings to success.

    The seeds are those of the dataset `env`: demonstrations of train share none with its heldout rows.

    Args:
        name: of the environment.
        options: its own.
        task: given to every reset.
        num: episodes to add.
        folder: of the file and its images.
        split: train or heldout.
        seed: of the episodes' seeds.
        max_turns: longest episode.
        on_episode: told how many have been added.

    Returns:
        path, num_rows: of the file; num_added; num_turns: of those added; not_added: reason → number.

    Raises:
        ConfigError: for a wrong option, an environment without an oracle, or if no episode succeeds.
    """
    rows = resolve("datasets", "env")(
        name, options, num_rows=ATTEMPTS_PER_EPISODE * num, tasks=[task], split=split, seed=seed
    )
    game = PlayedGame(name, options, task, rows.episode_seed(0))
    file, num_added, num_turns, not_added = DemonstrationFile(folder), 0, 0, Counter[str]()
    try:
        if not game.env.has("oracle"):
            raise ConfigError(f"env {name}: it has no oracle; play it yourself with vlrl env play {name}")
        for index in range(len(rows)):
            game.start(rows.episode_seed(index))
            reason = _play(game, max_turns)
            if not reason and not file.add(game)["is_new"]:
                reason = "is in the file"
            if reason:
                not_added[reason] += 1
                continue
            num_added, num_turns = num_added + 1, num_turns + len(game.moves)
            on_episode(num_added)
            if num_added == num:
                break
    finally:
        game.close()
    if not num_added and not len(file):
        raise ConfigError(f"env {name}: none of {len(rows)} episodes is a demonstration: {dict(not_added)}")
    counts = {"num_rows": len(file), "num_added": num_added, "num_turns": num_turns}
    return {"path": str(file.path), **counts, "not_added": dict(not_added)}


def _play(game: PlayedGame, max_turns: int) -> str:
    """Let the oracle play an episode; why it is no demonstration, empty if it is one."""
    while not game.is_over:
        if len(game.moves) == max_turns:
            return f"has not ended after {max_turns} turns"
        try:
            action = game.hint()
        except DataError:
            return "has no oracle"
        game.act(action)
    return "ends without success" if game.success is False else ""


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
