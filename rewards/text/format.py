"""Rewards on a completion's form alone: tags in order, or a pattern from the config.

A form says nothing of the answer: give it a small weight, or make it a gate.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from typing import Any

import regex

from vlrl.errors import ConfigError
from vlrl.parsing.extract import MAX_CHARS, extract_answer
from vlrl.scoring.author import reward

TAG_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,30}")
PATTERN_TIMEOUT_S = 1.0


@reward(range=(0.0, 1.0))
def think_answer_format(completion: str, answer: Any) -> float:
    """1 if the completion is one think part and one answer part and nothing else, else 0.

    Range {0, 1}. Source: DeepSeek-R1 (arXiv 2501.12948, 2.2.2), as VLM-R1 and R1-V have it. An empty
    answer, a tag inside a part, a second part and text around the parts score 0; an empty think part may be.
    """
    return float(bool(extract_answer(completion)))


@reward(range=(0.0, 1.0))
def tag_format(
    completion: str,
    answer: Any,
    *,
    tags: Sequence[str] = ("think", "answer"),
    may_be_empty: Sequence[str] = ("think",),
    partial: bool = False,
) -> float:
    """1 if the completion is these tagged parts, each once, in this order, with only white space around them.

    Let w be the tags <t₁></t₁>…<t_k></t_k> and f what the completion holds: its tags of these names, and as
    one symbol each stretch of other text outside the parts. Strict: 1 if f = w and the parts that must not be
    empty are not. Partial: LCS(f, w) / max(|f|, |w|), the longest common subsequence, where an empty part
    that must not be empty counts as one symbol too many.

    Range {0, 1}; [0, 1] with `partial`. Source: DeepSeek-R1's format reward; the partial credit is ours
    (open-r1 gives a quarter for each tag that occurs once, wherever it is). Empty text and text without tags
    score 0, a form repeated n times 0 (partial: 1/n), nested parts 0 (partial: below 1), <THINK> 0.

    Args:
        completion: what the model wrote.
        answer: not looked at.
        tags: names of the parts, in order.
        may_be_empty: names of the parts that may be blank.
        partial: give credit for a part of the form.

    Raises:
        ConfigError: for a name that is not a tag's, or that occurs twice.
    """
    found, blank = _tags_and_stretches(completion, tuple(tags))
    wanted = [tag for name in tags for tag in (f"<{name}>", f"</{name}>")]
    num_blank = len(blank - set(may_be_empty))
    if found == wanted and not num_blank:
        return 1.0
    if not partial or len(found) > MAX_CHARS:
        return 0.0
    from rapidfuzz.distance import LCSseq

    return float(LCSseq.similarity(found, wanted)) / max(len(found) + num_blank, len(wanted))


@reward(range=(0.0, 1.0))
def pattern_format(completion: str, answer: Any, *, pattern: str) -> float:
    """1 if the whole completion matches a regular expression of the config, else 0.

    Range {0, 1}. The pattern is the `regex` module's; a dot matches newlines. A completion on which it takes
    more than a second is not a match, so a pattern that backtracks does not stop the run. What degenerate
    completions score is up to the pattern: .* matches them all.

    Raises:
        ConfigError: if the pattern is none.
    """
    try:
        return float(_compiled(pattern).fullmatch(completion, timeout=PATTERN_TIMEOUT_S) is not None)
    except TimeoutError:
        return 0.0


@functools.lru_cache(maxsize=64)
def _compiled(pattern: str) -> regex.Pattern[str]:
    try:
        return regex.compile(pattern, regex.DOTALL)
    except regex.error as error:
        raise ConfigError(f"pattern {pattern!r} is not a regular expression: {error}") from error


@functools.lru_cache(maxsize=64)
def _tag_pattern(tags: tuple[str, ...]) -> re.Pattern[str]:
    for name in tags:
        if not TAG_NAME.fullmatch(name) or tags.count(name) > 1:
            raise ConfigError(f"tags={list(tags)}: {name!r} must be a word of letters, and there but once")
    if not tags:
        raise ConfigError("tags is empty; name at least one, for instance tags: [think, answer]")
    return re.compile(f"</?(?:{'|'.join(map(re.escape, tags))})>")


def _tags_and_stretches(completion: str, tags: tuple[str, ...]) -> tuple[list[str], set[str]]:
    """Tags in order of place, with "" for other text outside a part; and the names of the blank parts."""
    found: list[str] = []
    blank: set[str] = set()
    end, opened = 0, ""
    for match in _tag_pattern(tags).finditer(completion):
        between = not completion[end : match.start()].strip()
        tag = match.group()
        if opened and tag == f"</{opened}>":
            blank |= {opened} if between else set()
        elif not between and not opened:
            found.append("")
        found.append(tag)
        end, opened = match.end(), "" if tag.startswith("</") else tag[1:-1]
    if completion[end:].strip():
        found.append("")
    return found, blank
