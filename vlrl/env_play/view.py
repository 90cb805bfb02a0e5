"""What the page shows of a game, as JSON."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

import numpy as np
from PIL import Image

from vlrl.env_play.game import PlayedGame
from vlrl.environment.observe import pixels_of
from vlrl.environment.plain import PlainEnv
from vlrl.protocols import Observation
from vlrl.viewer.images import data_uri


def view_of(game: PlayedGame) -> dict[str, Any]:
    """Everything that the page shows."""
    return {
        "name": game.name,
        "options": _plain({**game.options, **game.task}),
        "seed": str(game.seed),
        "system_prompt": game.env.system_prompt,
        "tools": [tool["function"]["name"] for tool in game.env.tools],
        "tag": game.tag,
        "arrows": game.arrows,
        "screen": _screen_of(game.env),
        "task": game.first.text,
        "observation": _shown(game.observation),
        "turns": [
            {
                "action": move.action,
                "reward": float(move.result.reward),
                "invalid": bool(move.result.info.get("invalid", False)),
                "reply": move.result.observation.text,
            }
            for move in game.moves
        ],
        "info": _plain(game.moves[-1].result.info) if game.moves else {},
        "total": game.total,
        "is_over": game.is_over,
        "success": game.success,
        "can_undo": game.can_undo and bool(game.moves),
        "can_hint": game.env.has("oracle") and not game.is_over,
    }


def _shown(observation: Observation) -> dict[str, Any]:
    return {
        "text": observation.text,
        "role": observation.role,
        "images": [_image(image) for image in observation.images],
        "videos": [
            {"fps": float(video.fps), "frames": [_image(frame) for frame in video.frames]}
            for video in observation.videos
        ],
    }


def _image(image: Any) -> dict[str, Any]:
    pixels, out = pixels_of(image), io.BytesIO()
    Image.fromarray(pixels).save(out, "PNG")
    return {"uri": data_uri(out.getvalue(), "png"), "width": pixels.shape[1], "height": pixels.shape[0]}


def _screen_of(env: PlainEnv) -> dict[str, Any] | None:
    """What the page needs to know of an environment that is a screen; None of any other."""
    if not hasattr(env.env, "text_of_gesture"):
        return None
    backend = getattr(env.env, "backend", None)
    return {"form": str(getattr(backend, "form", "desktop"))}


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values as JSON keeps them: numbers as numbers, all else as text."""
    return {
        str(name): value.item()
        if isinstance(value, np.generic)
        else value
        if isinstance(value, str | int | float | bool | None)
        else str(value)
        for name, value in values.items()
    }
