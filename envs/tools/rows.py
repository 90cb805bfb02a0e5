"""Questions for the environment of tools as rows of a dataset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from vlrl.environment.observe import message_of
from vlrl.envs.tools.env import ToolEnv
from vlrl.processors.messages import message_of as text_message
from vlrl.types import Row


def question_row(
    id: str, text: str, images: Sequence[Any], answer: Any, options: Mapping[str, Any], seed: int = 0
) -> Row:
    """A row whose episodes are played in the environment "tools", and whose answer the rewards compare with.

    Args:
        id: unique in the dataset.
        text: the question.
        images: PIL images, [h, w, 3] uint8 arrays or paths.
        answer: what the rewards are given.
        options: of the environment.
        seed: of what tools draw.

    Raises:
        ConfigError: for a wrong option, and for what is not an image.
    """
    env, task = ToolEnv(**options), {"text": text, "images": list(images)}
    system = [text_message("system", env.system_prompt)] if env.system_prompt else []
    row: dict[str, Any] = {
        "id": id,
        "messages": [*system, message_of(env.reset(task, seed))],
        "env": {"name": "tools", "options": dict(options), "task": task, "seed": seed},
        "answer": answer,
    }
    return {**row, "tools": [dict(schema) for schema in env.tools]} if env.tools else row
