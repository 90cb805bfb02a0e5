"""A sample's tokens as spans to hover over, the media's folded, the trained ones marked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, groupby

from vlrl.protocols import Processor
from vlrl.types import IntArray, Media, Prompt, ReferenceTurn
from vlrl.viewer.rollouts import TIMES, visible

MAX_SHOWN = 1500
"""Tokens of one stretch shown; of a longer one only its two ends are."""


@dataclass(frozen=True, slots=True)
class TokenSpan:
    """A piece of text with its CSS class, its tooltip, and the medium it stands for (0 is none)."""

    text: str
    kind: str
    tip: str
    medium: int = 0


def turn_spans(
    turns: Sequence[ReferenceTurn], trained: Sequence[bool], processor: Processor
) -> list[TokenSpan]:
    """The spans of a whole conversation.

    Args:
        turns: contexts and the assistant's tokens, in order.
        trained: [number of tokens] True where the loss looks, over all turns.
        processor: spells the tokens.
    """
    out: list[TokenSpan] = []
    offset, num_media = 0, 0
    for turn in turns:
        out += _shortened(context_spans(turn.context, turn.media, processor, first_medium=num_media))
        num_media += len(turn.media)
        offset += len(turn.context.token_ids)
        texts = processor.token_texts(turn.action_ids)
        for text, token_id in zip(texts, turn.action_ids.tolist(), strict=True):
            words = "trained" if trained[offset] else "assistant's, not trained"
            kind = "learn" if trained[offset] else "ctx"
            out.append(TokenSpan(visible(text), kind, f"id {token_id} · token {offset} · {words}"))
            offset += 1
    return out


def context_spans(
    prompt: Prompt, media: Sequence[Media], processor: Processor, first_medium: int = 0
) -> list[TokenSpan]:
    """Tokens that are never trained; each medium's placeholders are folded and say which medium they are."""
    texts = processor.token_texts(prompt.token_ids)
    ids = prompt.token_ids.tolist()
    owner = [0] * len(ids)
    for number, (start, end) in enumerate(media_spans(prompt, media, processor), start=first_medium + 1):
        owner[start:end] = [number] * (end - start)
    out: list[TokenSpan] = []
    named: set[int] = set()
    for (text, token_id, medium), members in groupby(zip(texts, ids, owner, strict=True)):
        count = len(list(members))
        special = token_id in processor.banned_token_ids or token_id in processor.stop_token_ids
        if count > 1 and (medium or special):
            first = medium if medium not in named else 0  # its image once
            named.add(medium)
            whose = f" of medium {medium}" if medium else ""
            tip = f"id {token_id} · {count} tokens{whose} · not trained"
            out.append(TokenSpan(f"{text} {TIMES}{count}", "ctx pads", tip, first))
        else:
            kind = "ctx special" if special or (text.startswith("<|") and text.endswith("|>")) else "ctx"
            out += [TokenSpan(visible(text), kind, f"id {token_id} · not trained")] * count
    return out


def media_spans(prompt: Prompt, media: Sequence[Media], processor: Processor) -> list[tuple[int, int]]:
    """[start, end) of each medium in the expanded prompt, found by laying it beside the engine's form.

    The placeholders are those tokens that, replaced by as many tokens as the media have, turn the one into
    the other; where a family has several candidates, the commonest token of the prompt is the placeholder.
    """
    if not media:
        return []
    ids = prompt.token_ids.tolist()
    candidates = [i for i in processor.banned_token_ids if i in prompt.engine_ids]
    candidates.sort(key=ids.count, reverse=True)
    for size in (1, 2):
        for placeholders in combinations(candidates, size):
            spans = _aligned(prompt, media, set(placeholders))
            if spans is not None:
                return spans
    return []


def _aligned(prompt: Prompt, media: Sequence[Media], placeholders: set[int]) -> list[tuple[int, int]] | None:
    expanded: IntArray = prompt.token_ids
    spans: list[tuple[int, int]] = []
    position = 0
    for token in prompt.engine_ids.tolist():
        if token in placeholders:
            if len(spans) == len(media):
                return None
            end = position + media[len(spans)].num_tokens
            spans.append((position, end))
            position = end
        elif position < len(expanded) and expanded[position] == token:
            position += 1
        else:
            return None
    return spans if position == len(expanded) and len(spans) == len(media) else None


def _shortened(spans: list[TokenSpan]) -> list[TokenSpan]:
    if len(spans) <= MAX_SHOWN:
        return spans
    half = MAX_SHOWN // 2
    fold = TokenSpan(f" … {len(spans) - 2 * half} tokens … ", "fold", "left out of this page")
    return [*spans[:half], fold, *spans[-half:]]
