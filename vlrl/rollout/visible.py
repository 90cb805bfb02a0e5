"""What a policy is shown of a conversation, and so what it is trained under (`Processor.show` forks)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from vlrl.config.rollout import ContextConfig
from vlrl.parsing.tool_calls import without_thought
from vlrl.rollout.session import MediaMessage


def visible(conversation: Sequence[MediaMessage], config: ContextConfig) -> tuple[MediaMessage, ...]:
    """The messages that the policy is to see before its next action.

    Args:
        conversation: everything said: system messages, the opening, then actions and observations in turn.
        config: the policy.
    """
    if config.thoughts == "drop":
        conversation = [_without_thought(said) for said in conversation]
    if config.policy == "last_images":
        return _last_images(conversation, config.num_images, config.left_out)
    if config.policy == "window":
        return _window(conversation, config.num_turns)
    if config.policy == "summary":
        return _summary(conversation)
    return tuple(conversation)


def _without_thought(said: MediaMessage) -> MediaMessage:
    """An earlier action without what was thought before it."""
    if said.message["role"] != "assistant":
        return said
    parts = [{**part, "text": without_thought(part["text"])} for part in said.message["content"]]
    return replace(said, message={**said.message, "content": parts})


def _last_images(
    conversation: Sequence[MediaMessage], num_images: int, left_out: str
) -> tuple[MediaMessage, ...]:
    """Words in place of all images and videos but the last ones, also within a message."""
    room, kept = num_images, []
    for said in reversed(conversation):
        kept.append(_without(said, max(0, len(said.media) - room), left_out))
        room = max(0, room - len(said.media))
    return tuple(reversed(kept))


def _without(said: MediaMessage, num_dropped: int, left_out: str) -> MediaMessage:
    """A message whose first media are words."""
    if not num_dropped:
        return said
    parts, dropped = [], 0
    for part in said.message["content"]:
        drop = part["type"] != "text" and dropped < num_dropped
        dropped += drop
        parts.append({"type": "text", "text": left_out} if drop else part)
    return replace(said, message={**said.message, "content": parts}, media=said.media[num_dropped:])


def _window(conversation: Sequence[MediaMessage], num_turns: int) -> tuple[MediaMessage, ...]:
    """The opening, and the last num_turns actions with the observations that followed them."""
    actions = [i for i, said in enumerate(conversation) if said.message["role"] == "assistant"]
    if len(actions) <= num_turns:
        return tuple(conversation)
    return (*conversation[: actions[0]], *conversation[actions[-num_turns] :])


def _summary(conversation: Sequence[MediaMessage]) -> tuple[MediaMessage, ...]:
    """System messages, and the newest observation after the summary that came with it."""
    newest = conversation[-1]
    if not newest.summary:
        return tuple(conversation)
    before = {"type": "text", "text": newest.summary}
    message = {"role": "user", "content": [before, *newest.message["content"]]}
    system = [said for said in conversation if said.message["role"] == "system"]
    return (*system, MediaMessage(message, newest.media))
