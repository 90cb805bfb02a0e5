"""A model at work on an environment: it sees what happens and acts, until the end or until it is stopped."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from PIL import Image

from vlrl.chat.conversation import ModelAddress, complete
from vlrl.coordinates import Canvas
from vlrl.env_play.game import PlayedGame
from vlrl.environment.observe import digest_of, pixels_of
from vlrl.errors import DataError
from vlrl.protocols import Observation

RECORDING = "recording.jsonl"
State = Literal["thinking", "asking", "acting", "paused", "over", "stopped", "failed"]
ConfirmFn = Callable[[str], bool]
"""Takes an action's text; whether it may be done. It may wait for a person."""


@dataclass(frozen=True, slots=True)
class AgentTurn:
    """A turn as it is recorded: what was seen before it, and in which canvases the model saw it."""

    text: str
    reward: float
    seen: str
    canvases: tuple[Canvas, ...]


class AgentRun:
    """One episode of an agent. `run` works in one thread; the other methods are for others.

    Attributes:
        game: the environment's episode.
        state: what is going on.
        proposed: the action that is waited for, while state is "asking".
        error: why it failed; "" if it did not.
    """

    def __init__(
        self,
        game: PlayedGame,
        endpoint: ModelAddress,
        options: Mapping[str, Any],
        *,
        max_turns: int,
        confirm: ConfirmFn | None,
    ) -> None:
        """Do nothing yet.

        Args:
            game: begun.
            endpoint: where the model answers.
            options: fields of every request, such as temperature.
            max_turns: most actions.
            confirm: asked before each action; None does all.
        """
        self.game, self._endpoint, self._options = game, endpoint, dict(options)
        self._max_turns, self._confirm = max_turns, confirm
        self.state: State = "thinking"
        self.proposed = self.error = ""
        self._going, self._stopped = threading.Event(), threading.Event()
        self._going.set()
        self._turns: list[AgentTurn] = []

    def run(self) -> None:
        """Act until the environment ends, max_turns are done, or it is stopped; problems are in `error`."""
        try:
            while not (self.game.is_over or len(self._turns) >= self._max_turns) and self._turn():
                continue
        except Exception as error:  # whoever looks at the page sees it
            self.error, self.state = f"{type(error).__name__}: {error}", "failed"
        else:
            self.state = "stopped" if self._stopped.is_set() else "over"

    def pause(self) -> None:
        """Wait before the next action, until `resume`."""
        self._going.clear()

    def resume(self) -> None:
        """Go on."""
        self._going.set()

    def stop(self) -> None:
        """Do no further action."""
        self._stopped.set()
        self._going.set()

    @property
    def is_stopped(self) -> bool:
        """Whether somebody has stopped it."""
        return self._stopped.is_set()

    def record(self, folder: Path) -> Path:
        """Add the episode so far to FOLDER/recording.jsonl, as `vlrl env replay` plays it.

        Raises:
            DataError: if nothing was done.
        """
        if not self._turns:
            raise DataError("nothing was done, so there is nothing to record")
        game = self.game
        line = {
            "sample_id": f"{game.name}/agent/{game.seed}",
            "group_index": 0,
            "completion": self._turns[-1].text,
            "outcome": "ok" if game.is_over else "truncated",
            "reward": game.total,
            "env": {"name": game.name, "options": game.options, "task": game.task, "seed": game.seed},
            "metadata": {"success": game.success, "model": self._endpoint.model},
            "turns": [
                {
                    "text": turn.text,
                    "reward": turn.reward,
                    "seen": turn.seen,
                    "canvases": [
                        {
                            "original_size": list(canvas.original_size),
                            "size": list(canvas.size),
                            "coordinate_frame": canvas.coordinate_frame,
                        }
                        for canvas in turn.canvases
                    ],
                }
                for turn in self._turns
            ],
            "end": {"seen": digest_of(game.observation) if game.is_over else "", "media": []},
        }
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / RECORDING
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
            file.flush()
            os.fsync(file.fileno())
        return path

    def _turn(self) -> bool:
        """One action; False if it was stopped, or the action refused."""
        if not self._may_go_on():
            return False
        self.state = "thinking"
        seen = self.game.observation
        text, canvases = asyncio.run(self._answer(seen))
        if not self._may_go_on():
            return False
        if self._confirm is not None:
            self.proposed, self.state = text, "asking"
            is_allowed = self._confirm(text)
            self.proposed = ""
            if not is_allowed:
                self.stop()
                return False
        self.state = "acting"
        if self.game.env.has("seen"):
            self.game.env.call("seen", canvases)
        self.game.act(text)
        self._turns.append(
            AgentTurn(text, float(self.game.moves[-1].result.reward), digest_of(seen), canvases)
        )
        return True

    def _may_go_on(self) -> bool:
        if not self._going.is_set():
            self.state = "paused"
            self._going.wait()
        return not self._stopped.is_set()

    async def _answer(self, seen: Observation) -> tuple[str, tuple[Canvas, ...]]:
        """(the model's action, the canvases of the images that it is shown last)."""
        tools = [dict(tool) for tool in self.game.env.tools]
        offered = (
            {"tools": tools, "tool_choice": "none"} if tools else {}
        )  # calls stay text, which is recorded
        answer = await complete(self._endpoint, {**self._options, **offered, "messages": self._messages()})
        originals = [pixels_of(image).shape[:2] for image in seen.images]
        sizes = answer.image_sizes[len(answer.image_sizes) - len(originals) :] or tuple(originals)
        canvases = tuple(
            Canvas((int(full[0]), int(full[1])), size, answer.coordinate_frame)
            for full, size in zip(originals, sizes, strict=True)
        )
        return answer.text, canvases

    def _messages(self) -> list[dict[str, Any]]:
        game = self.game
        system = game.env.system_prompt
        messages: list[dict[str, Any]] = [{"role": "system", "content": system}] if system else []
        messages.append(_said(game.first))
        for move in game.moves:
            messages.append({"role": "assistant", "content": move.action})
            messages.append(_said(move.result.observation))
        return messages


def _said(observation: Observation) -> dict[str, Any]:
    """An observation as a message of OpenAI's format: its images, then its text."""
    if observation.videos:
        raise DataError("the environment shows a video, and videos are not served")
    parts: list[dict[str, Any]] = []
    for image in observation.images:
        file = io.BytesIO()
        Image.fromarray(pixels_of(image)).save(file, "PNG")
        url = f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"
        parts.append({"type": "image_url", "image_url": {"url": url}})
    text = [{"type": "text", "text": observation.text}] if observation.text else []
    return {"role": observation.role, "content": parts + text}
