"""A model's chat template, and the tokens that only it may write."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from typing import Any

from vlrl.errors import DataError

_TAG = re.compile(r"<([A-Za-z][\w-]*)>")
_TAGS = re.compile(r"(?:<([A-Za-z][\w-]*)>\s*(?:</\1>\s*)?)+\Z")
"""Tags that end a text: opened, as a template that has the model think writes them, or empty."""
_SAID = "Xq7"
"""What no template writes by itself."""
_ASKED: Mapping[str, Any] = {"role": "user", "content": [{"type": "text", "text": "?"}]}


class ChatTemplate:
    """Messages to text; text from elsewhere is kept from looking like the template's own."""

    def __init__(self, hf_processor: Any, special_tokens: Collection[str]) -> None:
        """Wrap a transformers processor.

        Args:
            hf_processor: has the template.
            special_tokens: what text may not hold.
        """
        self._hf = hf_processor
        self._special = re.compile("|".join(re.escape(token) for token in sorted(special_tokens)))

    def render(
        self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]] = (), *, opening: bool
    ) -> str:
        """The text of a conversation.

        Args:
            messages: media parts as {"type": "image"}.
            tools: JSON schemas of the functions on offer.
            opening: end with what opens the assistant's turn.

        Raises:
            DataError: for tools, if the template has no place for them.
        """
        if tools and not self._offers_tools:
            raise DataError(
                "the model's chat template does not support tools; have the environment describe them in "
                "the system prompt (options told_by: system_prompt, or offer_tools: false), or "
                "give the model a template that does"
            )
        return self._rendered(messages, tools, opening)

    def opened(self, text: str) -> str:
        """What a rendered conversation that ends with the assistant's opening has of the message itself.

        Templates of models that think write "<think>" there, or an empty thought where they are not to: the
        message begins with it, and the model goes on from there. Only tags count, opened or empty.
        """
        if self._header:
            start = text.rfind(self._header)
        else:  # nothing but the end of the user's turn stands before the message, as in Mistral's templates
            start = len(text) - len(self._opening) if text.endswith(self._opening) else -1
        tail = text[start + len(self._header) :].lstrip() if start >= 0 else ""
        return tail if _TAGS.match(tail) else ""

    @cached_property
    def _opening(self) -> str:
        """What the template writes where the assistant is to speak."""
        closed, opening = (self._rendered([_ASKED], (), is_open) for is_open in (False, True))
        pairs = enumerate(zip(closed, opening, strict=False))
        return opening[next((i for i, (a, b) in pairs if a != b), len(closed)) :]

    @cached_property
    def _header(self) -> str:
        """What opens the assistant's turn, without the beginning of the message and blanks before it."""
        written = self._opening
        if (tags := _TAGS.search(written)) is None:
            return written.rstrip()
        answer = {"role": "assistant", "content": [{"type": "text", "text": _SAID}]}
        after = self._rendered([_ASKED, answer, _ASKED], (), False).rpartition(_SAID)[2]
        end = tags.start()
        for tag in _TAG.finditer(written, end):
            if f"</{tag[1]}>" in after:  # the template closes it around every message: it is the header's
                end = tag.end()
        return written[:end].rstrip()

    def closing(self, end_of_turn: str) -> str:
        """What is written behind the token that ends the assistant's last message."""
        return self._closed.partition(end_of_turn)[2]

    @cached_property
    def _closed(self) -> str:
        """What is written behind the assistant's last message."""
        answer = {"role": "assistant", "content": [{"type": "text", "text": _SAID}]}
        return self._rendered([_ASKED, answer], (), False).rpartition(_SAID)[2]

    @cached_property
    def _offers_tools(self) -> bool:
        """Whether tools change what is written."""
        tool = {"type": "function", "function": {"name": "probe", "description": "", "parameters": {}}}
        return self._rendered([_ASKED], (), True) != self._rendered([_ASKED], (tool,), True)

    def _rendered(
        self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]], opening: bool
    ) -> str:
        offered = {"tools": list(tools)} if tools else {}
        return str(
            self._hf.apply_chat_template(
                list(messages), tokenize=False, add_generation_prompt=opening, **offered
            )
        )

    def checked(self, text: Any, where: str) -> Any:
        """The text, if it holds none of the model's special tokens.

        Raises:
            DataError: if it does.
        """
        if isinstance(text, str) and (found := self._special.search(text)):
            raise DataError(
                f"{where}: text must not contain the model's special tokens, one is {found.group()!r}; "
                "media are given as parts of a message, turns as messages"
            )
        return text

    def broken_up(self, text: str) -> str:
        """The text with a space inside every special token: what an environment says may quote the model."""
        return self._special.sub(lambda found: f"{found.group()[0]} {found.group()[1:]}", text)


def without_opened(text: str, opened: str) -> str:
    """An assistant's message without what the template has written of it, if it begins with that.

    White space after the tag may differ: what the template wrote is what the model saw.
    """
    if not opened or text.startswith(opened):
        return text[len(opened) :]
    tag = opened.rstrip()
    return text[len(tag) :].lstrip() if text.startswith(tag) else text
