"""Law 4 for prompts: what does not fit is dropped, or loses whole turns with their media; nothing is cut."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from vlrl.errors import DataError
from vlrl.types import Row

Overlong: TypeAlias = Literal["drop", "trim", "error"]


class PromptTooLong(DataError):
    """A prompt that does not fit where data.overlong=error; the row itself is not broken."""


@dataclass(frozen=True, slots=True)
class Fitted:
    """A row that fits, or none.

    Attributes:
        row: to be used; None if it does not fit.
        num_dropped_turns: messages taken out of it.
        reason: why it does not fit.
    """

    row: Row | None
    num_dropped_turns: int = 0
    reason: str = ""


REMEDY = "raise generator.max_model_len or data.max_prompt_tokens, or lower processor.max_pixels"
PAIR_REMEDY = f"{REMEDY}; a prompt with both completions needs trainer.max_tokens_per_micro_batch, too"


def fit_row(
    row: Row, num_tokens: Callable[[Row], int], room: int, policy: Overlong, remedy: str = REMEDY
) -> Fitted:
    """Hold a row's prompt to `room` tokens.

    Args:
        row: with `id` and `messages`.
        num_tokens: prompt tokens of a row, media included.
        room: most tokens of its prompt.
        policy: "drop" it, "trim" its oldest turns until it fits (the system message and the last user turn
            stay; if those alone do not fit it is dropped), or "error".
        remedy: what would make room.

    Raises:
        PromptTooLong: naming the sample, if policy is "error" and it does not fit.
    """
    needed = num_tokens(row)
    if needed <= room:
        return Fitted(row)
    reason = f"sample {row['id']!r} needs {needed} prompt tokens, {room} fit; {remedy}"
    if policy == "error":
        raise PromptTooLong(f"{reason}, or set data.overlong to drop or trim")
    if policy == "trim":
        messages = row["messages"]
        while (shorter := without_oldest_turn(messages)) is not None:
            messages = shorter
            trimmed = {**row, "messages": messages}
            if num_tokens(trimmed) <= room:
                return Fitted(trimmed, len(row["messages"]) - len(messages))
    return Fitted(None, reason=reason)


def without_oldest_turn(messages: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]] | None:
    """The conversation without its first exchange: a user's turn and all up to the next one.

    System messages at the beginning stay. None if only one user turn is left.
    """
    users = [index for index, message in enumerate(messages) if message["role"] == "user"]
    if len(users) < 2:
        return None
    begin = next(index for index, message in enumerate(messages) if message["role"] != "system")
    return [*messages[:begin], *messages[users[1] :]]
