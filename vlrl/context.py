"""What a policy is shown of a conversation, and so what it is trained under (`Processor.show` forks)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from vlrl.episode_options import ContextConfig
from vlrl.session import Said


def visible(conversation: Sequence[Said], config: ContextConfig) -> tuple[Said, ...]:
    """The messages that the policy is to see before its next action.

    Args:
        conversation: everything said: system messages, the opening, then actions and observations in turn.
        config: the policy.
    """
    if config.policy == "last_images":
        return _last_images(conversation, config.num_images, config.left_out)
    if config.policy == "window":
        return _window(conversation, config.num_turns)
    if config.policy == "summary":
        return _summary(conversation)
    return tuple(conversation)


def _last_images(conversation: Sequence[Said], num_images: int, left_out: str) -> tuple[Said, ...]:
    """Words in place of all pictures and videos but the last ones, also within a message."""
    room, kept = num_images, []
    for said in reversed(conversation):
        kept.append(_without(said, max(0, len(said.media) - room), left_out))
        room = max(0, room - len(said.media))
    return tuple(reversed(kept))


def _without(said: Said, num_dropped: int, left_out: str) -> Said:
    """A message whose first media are words."""
    if not num_dropped:
        return said
    parts, dropped = [], 0
    for part in said.message["content"]:
        drop = part["type"] != "text" and dropped < num_dropped
        dropped += drop
        parts.append({"type": "text", "text": left_out} if drop else part)
    return replace(said, message={**said.message, "content": parts}, media=said.media[num_dropped:])


def _window(conversation: Sequence[Said], num_turns: int) -> tuple[Said, ...]:
    """The opening, and the last num_turns actions with the observations that followed them."""
    actions = [i for i, said in enumerate(conversation) if said.message["role"] == "assistant"]
    if len(actions) <= num_turns:
        return tuple(conversation)
    return (*conversation[: actions[0]], *conversation[actions[-num_turns] :])


def _summary(conversation: Sequence[Said]) -> tuple[Said, ...]:
    """System messages, and the newest observation after the summary that came with it."""
    newest = conversation[-1]
    if not newest.summary:
        return tuple(conversation)
    before = {"type": "text", "text": newest.summary}
    message = {"role": "user", "content": [before, *newest.message["content"]]}
    system = [said for said in conversation if said.message["role"] == "system"]
    return (*system, Said(message, newest.media))
