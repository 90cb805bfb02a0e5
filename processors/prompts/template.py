"""A model's chat template, and the tokens that only it may write."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from typing import Any

from vlrl.errors import ConfigError, DataError

_TAG = re.compile(r"<([A-Za-z][\w-]*)>")
_TAGS = re.compile(r"(?:<([A-Za-z][\w-]*)>\s*(?:</\1>\s*)?)+\Z")
"""Tags that end a text: opened, as a template that has the model think writes them, or empty."""
_SAID = "Xq7"
"""What no template writes by itself."""
_ASKED: Mapping[str, Any] = {"role": "user", "content": [{"type": "text", "text": "?"}]}


class ChatTemplate:
    """Messages to text; text from elsewhere is kept from looking like the template's own.

    A text begins with the token that the tokenizer puts before every text, if the template writes none, as
    LLaVA-NeXT's do: transformers' own rule.
    """

    def __init__(self, hf_processor: Any, special_tokens: Collection[str]) -> None:
        """Wrap a transformers processor.

        Args:
            hf_processor: has the template.
            special_tokens: what text may not hold.
        """
        self._hf = hf_processor
        tokenizer = hf_processor.tokenizer
        adds = tokenizer.bos_token and tokenizer.encode("x")[:1] == [tokenizer.bos_token_id]
        self._beginning: str = tokenizer.bos_token if adds else ""
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
        return self._around_answer[1].partition(end_of_turn)[2]

    def answer_prefix(self) -> str:
        """A blank, if that is what stands between the assistant's opening and its message, or nothing."""
        opened = self._rendered([_ASKED], (), True)
        return " " if self._around_answer[0] == opened + " " else ""

    def end_of_turn(self) -> str:
        """The first special token behind the assistant's last message; the tokenizer's, if there is none."""
        tokenizer = self._hf.tokenizer
        special = [token.content for token in tokenizer.added_tokens_decoder.values() if token.special]
        found = re.search("|".join(map(re.escape, special)), self._around_answer[1])
        return found.group() if found else str(tokenizer.eos_token)

    @cached_property
    def _around_answer(self) -> tuple[str, str]:
        """What is written before the assistant's last message, and behind it."""
        answer = {"role": "assistant", "content": [{"type": "text", "text": _SAID}]}
        before, _, behind = self._rendered([_ASKED, answer], (), False).rpartition(_SAID)
        return before, behind

    @cached_property
    def _offers_tools(self) -> bool:
        """Whether tools change what is written."""
        tool = {"type": "function", "function": {"name": "probe", "description": "", "parameters": {}}}
        return self._rendered([_ASKED], (), True) != self._rendered([_ASKED], (tool,), True)

    def _rendered(
        self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]], opening: bool
    ) -> str:
        offered = {"tools": list(tools)} if tools else {}
        text = str(
            self._hf.apply_chat_template(
                list(messages), tokenize=False, add_generation_prompt=opening, **offered
            )
        )
        return text if text.startswith(self._beginning) else self._beginning + text

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


class TextPieces:
    """Tokens of a part of a text, as they are in the whole.

    Tokenizers of the SentencePiece kind put a blank before what they are given, and take one from what they
    decode. A part that follows other text is therefore tokenized behind a line break, which joins no word.
    """

    def __init__(self, tokenizer: Any, needed_by: str) -> None:
        """Wrap a transformers tokenizer; `needed_by` is whose tokens it must have."""
        self._tokenizer, self._needed_by = tokenizer, needed_by
        self._adds_blank = tokenizer.convert_ids_to_tokens(self._encode("x"))[0].startswith("▁")

    def encode(self, text: str, after: str = "\n") -> list[int]:
        """Token ids of a text behind another: a special token, a line break for any other text, or none."""
        if not self._adds_blank:
            return self._encode(text)
        return self._encode(after + text)[len(self._encode(after)) :]

    def decode(self, token_ids: list[int]) -> str:
        """Text of tokens that stand behind others; special tokens are shown."""
        if not self._adds_blank:
            return self._decode(token_ids)
        return self._decode([*self._encode("\n"), *token_ids]).removeprefix("\n")

    def id_of(self, token: str) -> int:
        """The id of one token.

        Raises:
            ConfigError: if the tokenizer has none such.
        """
        token_id = self._tokenizer.convert_tokens_to_ids(token)
        if token_id is None or token_id == self._tokenizer.unk_token_id:
            raise ConfigError(f"the model's tokenizer lacks {token}, which {self._needed_by} needs")
        return int(token_id)

    def _encode(self, text: str) -> list[int]:
        return list(self._tokenizer.encode(text, add_special_tokens=False))

    def _decode(self, token_ids: list[int]) -> str:
        return str(self._tokenizer.decode(token_ids, skip_special_tokens=False))
