"""The assistant's turns of a conversation, one after the other, as supervised training writes them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vlrl.errors import DataError
from vlrl.processors.messages import media_parts, text_of
from vlrl.processors.prompts.template import ChatTemplate, without_opened
from vlrl.types import Sample


@dataclass(frozen=True, slots=True)
class SupervisedTurn:
    """A turn of the assistant's.

    Attributes:
        added: text that the template writes between the turn before and this one.
        opened: the whole conversation up to where the assistant is to speak.
        said: what it says, without what the template has opened of it.
        num_media: media in `added`.
    """

    added: str
    opened: str
    said: str
    num_media: int


def supervised_turns(
    template: ChatTemplate,
    messages: Sequence[Mapping[str, Any]],
    sample: Sample,
    answer_prefix: str,
    end_of_turn: str,
) -> Iterator[SupervisedTurn]:
    """Each of the assistant's turns in order.

    Raises:
        DataError: if the template does not go on from what it wrote for an earlier turn.
    """
    start, written = 0, ""
    for index, message in enumerate(messages):
        if message["role"] != "assistant":
            continue
        opened = template.render(messages[:index], sample.tools, opening=True)
        if not opened.startswith(written):
            raise DataError(
                f"sample {sample.id!r}: the chat template rewrites earlier turns; set sft.train_on=last to "
                "train on the last turn alone"
            )
        said = without_opened(text_of(message), template.opened(opened))
        num_media = sum(len(media_parts(m)) for m in messages[start:index])
        yield SupervisedTurn(opened[len(written) :], opened, said, num_media)
        start, written = index, opened + answer_prefix + said + end_of_turn
