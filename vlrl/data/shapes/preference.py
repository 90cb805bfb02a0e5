"""Pairs and labelled completions, as TRL, ms-swift and LLaMA-Factory write them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vlrl.data.shapes.conversations import from_conversations
from vlrl.data.shapes.fields import Fields, Message, kept_columns, system_of, turns_of


def from_preference(fields: Fields) -> dict[str, Any]:
    """TRL's preferences: `chosen` and `rejected`, or `completion` and its `label`, each text or messages.

    `prompt` is text or messages too. Without it, it is what chosen and rejected begin with: their first
    messages, or the words that both texts share. The chosen completion, or the labelled one, is the target.
    """
    system = system_of(fields)
    prompt = turns_of(fields.pop("prompt"), "user", "prompt") if "prompt" in fields else []
    if "conversations" in fields:  # LLaMA-Factory's: both sides are turns of from and value
        prompt = from_conversations({"conversations": fields.pop("conversations")})["messages"]
        fields |= {side: fields[side]["value"] for side in ("chosen", "rejected")}
    row: dict[str, Any] = {}
    if "completion" in fields:
        label = fields.pop("label")
        if label not in (True, False):
            raise ValueError(f"'label' must be true or false, not {label!r}")
        row["label"] = bool(label)
        *more, target = turns_of(fields.pop("completion"), "assistant", "completion")
        prompt += more
    else:
        chosen, rejected = fields.pop("chosen"), fields.pop("rejected")
        if isinstance(chosen, str) != isinstance(rejected, str):
            raise TypeError("'chosen' and 'rejected' must both be text, or both messages")
        if isinstance(chosen, str) and not prompt:
            start = _shared_words(chosen, rejected)
            prompt = turns_of(chosen[:start].rstrip(), "user", "chosen")
            chosen, rejected = chosen[start:], rejected[start:]
        sides = [turns_of(s, "assistant", c) for s, c in ((chosen, "chosen"), (rejected, "rejected"))]
        prompt, target, other = _pair(prompt, *sides)
        row["rejected"] = _spoken_by_assistant(other)
    row["target"] = _spoken_by_assistant(target)
    return {**kept_columns(fields), **row, "messages": [*system, *prompt]}


def _pair(
    prompt: list[Message], chosen: list[Message], rejected: list[Message]
) -> tuple[list[Message], Message, Message]:
    """The prompt, and the message in which each side goes on from it."""
    if chosen[0]["role"] != "assistant":  # whole conversations
        same = [a == b for a, b in zip(chosen[:-1], rejected[:-1], strict=False)]
        num_shared = same.index(False) if False in same else len(same)
        shared, chosen, rejected = chosen[:num_shared], chosen[num_shared:], rejected[num_shared:]
        if prompt and prompt[-1]["content"] not in [message["content"] for message in shared]:
            raise ValueError("'chosen' and 'rejected' are conversations that do not hold the 'prompt'")
        prompt = shared
    if len(chosen) != 1 or len(rejected) != 1:
        raise ValueError(
            "'chosen' and 'rejected' must differ in the assistant's last message alone; they differ in "
            f"{len(chosen)} and {len(rejected)} messages"
        )
    return prompt, chosen[0], rejected[0]


def _shared_words(first: str, second: str) -> int:
    """Characters of the whole words with which both texts begin.

    Raises:
        ValueError: if there are none.
    """
    differ = (i for i, (a, b) in enumerate(zip(first, second, strict=False)) if a != b)
    length = next(differ, min(len(first), len(second)))
    while length and not first[length - 1].isspace():
        length -= 1
    if not first[:length].strip():
        raise ValueError("without a 'prompt', 'chosen' and 'rejected' must begin with it")
    return length


def _spoken_by_assistant(message: Mapping[str, Any]) -> str:
    """The text of an assistant's message."""
    content = message["content"]
    if message["role"] != "assistant":
        raise ValueError(f"a completion must be an assistant's message, not one of {message['role']!r}")
    if not isinstance(content, str) and any(part["type"] != "text" for part in content):
        raise ValueError("a completion holds media; only text can be trained on")
    return content if isinstance(content, str) else "".join(part["text"] for part in content)
