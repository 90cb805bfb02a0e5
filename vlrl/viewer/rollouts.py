"""Rollout records made ready to show: the same sample before and after, token by token."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from vlrl.viewer.charts import short
from vlrl.viewer.images import InlineImage, inline_images
from vlrl.viewer.room import SizeBudget
from vlrl.viewer.strips import Strip, build_strip, is_strip, num_images

Record = Mapping[str, Any]

MAX_RUN = 600
"""Tokens of one side of the mask shown in a row; of a longer run only its two ends are."""

LIKELY = (0.99, 0.9, 0.5, 0.1)
"""Probabilities that part the five shades of a generated token, from sure to surprising."""

NOT_SCORED = "not scored"
"""Stands where there is no reward."""

TIMES = "\N{MULTIPLICATION SIGN}"


@dataclass(frozen=True, slots=True)
class TextSpan:
    """A piece of text with its CSS class and its tooltip."""

    text: str
    kind: str
    tip: str


@dataclass(frozen=True, slots=True)
class Attempt:
    """One trajectory: what was generated and how it was judged; an episode of several turns has a strip."""

    heading: str
    spans: Sequence[TextSpan]
    outcome: str
    reward: str
    quality: float | None
    parts: Sequence[tuple[str, str]]
    advantage: str
    num_tokens: int
    failure: str = ""
    strip: Strip | None = None

    @property
    def is_scored(self) -> bool:
        """True if it has a reward."""
        return self.reward != NOT_SCORED


@dataclass(frozen=True, slots=True)
class Card:
    """One sample with its attempts, side by side; or one below the other, if they are episodes."""

    sample_id: str
    question: str
    answer: str
    images: Sequence[InlineImage]
    prompt: Sequence[TextSpan]
    num_prompt_tokens: int
    attempts: Sequence[Attempt]

    @property
    def is_episode(self) -> bool:
        """True if any attempt is shown as a film strip."""
        return any(attempt.strip for attempt in self.attempts)

    @property
    def has_changed(self) -> bool:
        """True if the attempts earned different rewards, as they are shown."""
        return len({attempt.reward for attempt in self.attempts}) > 1

    @property
    def has_failed(self) -> bool:
        """True if the last attempt has no score, was cut short, or earned less than the best one shown."""
        last = self.attempts[-1]
        if last.quality is not None:
            return last.outcome != "ok" or last.quality < 1
        return last.outcome != "ok" or not last.is_scored


@dataclass(frozen=True, slots=True)
class RolloutColumn:
    """Rollouts that stand below one heading, for example those before training.

    Attributes:
        heading: of each of its attempts.
        folder: that media paths are relative to.
        records: a sample's first one is shown.
    """

    heading: str
    folder: Path
    records: Sequence[Record]


def build_cards(columns: Sequence[RolloutColumn], limit: int) -> list[Card]:
    """The first `limit` samples of the columns, in file order."""
    by_sample: dict[str, list[tuple[RolloutColumn, Record]]] = {}
    for column in columns:
        for record in column.records:
            shown = by_sample.setdefault(str(record.get("sample_id", "")), [])
            if all(known is not column for known, _ in shown):
                shown.append((column, record))
    chosen = list(by_sample.items())[:limit]
    rewards = [r["reward"] for _, shown in chosen for _, r in shown if r.get("reward") is not None]
    scale = (min(rewards, default=0.0), max(rewards, default=0.0))
    room = SizeBudget(sum(num_images(record) for _, shown in chosen for _, record in shown))
    return [_card(sample_id, shown, scale, room) for sample_id, shown in chosen]


def token_spans(ledger: Record, start: int, stop: int | None = None) -> list[TextSpan]:
    """Tokens [start, stop) of a ledger as spans; repeated placeholders and long runs are folded."""
    texts, ids = ledger.get("token_texts", []), ledger.get("token_ids", [])
    mask, logprobs = ledger.get("loss_mask", []), ledger.get("sampler_logprobs", [])
    tokens = list(zip(texts, ids, mask, logprobs, strict=False))[start:stop]
    out: list[TextSpan] = []
    for generated, members in groupby(tokens, key=lambda token: bool(token[2])):
        run = list(members)
        spans = [_generated_span(*token) for token in run] if generated else _context_spans(run)
        if len(spans) > MAX_RUN:
            half = MAX_RUN // 2
            fold = TextSpan(f" … {len(spans) - 2 * half} tokens … ", "fold", "left out of this page")
            spans = [*spans[:half], fold, *spans[-half:]]
        out += spans
    return out


def _card(
    sample_id: str,
    shown: Sequence[tuple[RolloutColumn, Record]],
    scale: tuple[float, float],
    room: SizeBudget,
) -> Card:
    column, first = shown[0]
    ledger, num_prompt_tokens = _first_ledger(first)
    answer = first.get("answer")
    is_episode = any(is_strip(record) for _, record in shown)
    asked = (first.get("turns") or [{}])[0].get("media", range(len(first.get("media", []))))
    asked = [] if is_episode else asked  # the strip shows them
    return Card(
        sample_id=sample_id,
        question=_question(first.get("messages", [])),
        answer="" if answer is None else str(answer),
        images=[p for i in asked for p in inline_images(column.folder, first["media"][i], room.image)],
        prompt=[] if is_episode else _fitting(token_spans(ledger, 0, num_prompt_tokens), room),
        num_prompt_tokens=num_prompt_tokens,
        attempts=[_attempt(column, record, scale, is_episode, room) for column, record in shown],
    )


def _attempt(
    column: RolloutColumn, record: Record, scale: tuple[float, float], is_episode: bool, room: SizeBudget
) -> Attempt:
    ledgers = record.get("ledgers", [])
    reward, (low, high) = record.get("reward"), scale
    advantage = record.get("advantage")
    strip = build_strip(column.folder, record, room.image) if is_episode else None
    if strip is None:
        spans = token_spans(*_first_ledger(record))
    else:
        spans = [span for ledger in ledgers for span in token_spans(ledger, 0)]
    return Attempt(
        heading=column.heading,
        spans=_fitting(spans, room),
        outcome=str(record.get("outcome", "")),
        reward=NOT_SCORED if reward is None else f"{reward:.2f}",
        quality=None if reward is None or high <= low else (reward - low) / (high - low),
        parts=[(name, short(value)) for name, value in (record.get("parts") or {}).items()],
        advantage=f"{advantage:+.2f}" if advantage else "",
        num_tokens=sum(sum(ledger.get("loss_mask", [])) for ledger in ledgers),
        failure=str(record.get("failure", "")),
        strip=strip,
    )


def _fitting(spans: Sequence[TextSpan], room: SizeBudget) -> list[TextSpan]:
    """The tokens one by one while there is room, then as runs of what was generated and what was not."""
    if room.has_tokens(sum(len(span.text) + len(span.tip) for span in spans), len(spans)):
        return list(spans)
    runs = []
    for generated, members in groupby(spans, key=lambda span: span.kind.startswith("act")):
        run = list(members)
        kind = "generated" if generated else "context"
        tip = f"{len(run)} pieces, {kind}; token by token in the run's rollouts"
        runs.append(TextSpan("".join(span.text for span in run), "act p0" if generated else "ctx", tip))
    return runs


def _first_ledger(record: Record) -> tuple[Record, int]:
    """(the first ledger, tokens of it before anything was generated)."""
    ledger: Record = next(iter(record.get("ledgers", [])), {})
    mask = ledger.get("loss_mask", [])
    return ledger, mask.index(1) if 1 in mask else len(mask)


def _question(messages: Sequence[Mapping[str, Any]]) -> str:
    """Text of the last user message."""
    for message in reversed(messages):
        if message.get("role") == "user":
            content = message.get("content", "")
            if isinstance(content, str):
                return content
            return " ".join(
                str(part.get("text", "")) for part in content if part.get("type") == "text"
            ).strip()
    return ""


def _generated_span(text: str, token_id: int, _mask: int, logprob: float | None) -> TextSpan:
    if logprob is None:
        return TextSpan(visible(text), "act p4", f"id {token_id} · log-probability unknown · trained")
    probability = math.exp(min(0.0, logprob))
    shade = sum(probability < bound for bound in LIKELY)
    return TextSpan(
        visible(text),
        f"act p{shade}",
        f"id {token_id} · logprob {logprob:.3f} · p {probability:.1%} · trained",
    )


def _context_spans(run: Sequence[tuple[str, int, int, float | None]]) -> list[TextSpan]:
    """Tokens the policy did not generate; placeholders of one medium, equal and adjacent, become one span."""
    out = []
    for (text, token_id), members in groupby(run, key=lambda token: (token[0], token[1])):
        count = len(list(members))
        special = text.startswith("<|") and text.endswith("|>")
        tip = f"id {token_id} · context, not trained"
        if special and count > 1:
            out.append(TextSpan(f"▦{TIMES}{count}", "ctx pads", f"{count} of {text} · {tip}"))
        else:
            out += [TextSpan(visible(text), "ctx special" if special else "ctx", tip)] * count
    return out


def visible(text: str) -> str:
    """Line ends shown and kept; other control characters as their images (␀, ␛)."""
    shown = "".join(chr(0x2400 + ord(c)) if ord(c) < 32 and c not in "\n\t" else c for c in text)
    return shown.replace("\n", "↵\n")
