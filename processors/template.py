"""A model's chat template, and the tokens that only it may write."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from typing import Any

from vlrl.errors import DataError


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
                "the model's chat template has no place for tools, so it would not be told of them; have "
                "the environment say them itself (options told_by: system_prompt, or offer_tools: false), or "
                "give the model a template that does"
            )
        return self._rendered(messages, tools, opening)

    @cached_property
    def _offers_tools(self) -> bool:
        """Whether tools change what is written."""
        tool = {"type": "function", "function": {"name": "probe", "description": "", "parameters": {}}}
        asked = [{"role": "user", "content": [{"type": "text", "text": "?"}]}]
        return self._rendered(asked, (), True) != self._rendered(asked, (tool,), True)

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
