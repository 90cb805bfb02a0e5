"""A penalty for saying the same again."""

from __future__ import annotations

import json
from collections.abc import Hashable, Sequence
from typing import Any, Literal, TypeAlias, get_args

from vlrl.errors import ConfigError
from vlrl.parsing.extract import extract_answer

RepetitionUnit: TypeAlias = Literal["words", "characters", "items"]
_MAX_JSON_CHARS = 200_000


def repetition_penalty(
    completion: str,
    answer: Any,
    *,
    n: int = 6,
    unit: RepetitionUnit = "words",
    max_penalty: float = 1.0,
) -> float:
    """−max_penalty · (1 − distinct n-grams / n-grams), over the whole completion.

    Units: "words" are split at white space, case folded; "characters" are for scripts without spaces;
    "items" are the elements of the answer's JSON list, in n-grams of 1 whatever n is (boxes said twice), and
    words where the answer is not a JSON list. Range [−max_penalty, 0], 0 for fewer than n units. Source:
    Demystifying Long Chain-of-Thought (arXiv 2502.03373), per completion instead of per token, as TRL and
    open-r1 have it; VLM-R1 takes words with n = 6, boxes with n = 1. Never positive, so nothing degenerate
    scores; empty text is not punished.

    Args:
        completion: what the model wrote, think part and all.
        answer: not looked at.
        n: units in an n-gram.
        unit: what is counted.
        max_penalty: of a completion that is all repetition, in the limit.

    Raises:
        ConfigError: for another unit, n below 1 or a negative penalty.
    """
    if unit not in get_args(RepetitionUnit) or n < 1 or max_penalty < 0:
        raise ConfigError(
            f"repetition_penalty: unit={unit!r}, n={n}, max_penalty={max_penalty}; unit is words, characters "
            "or items, n at least 1, max_penalty at least 0"
        )
    items = _json_items(completion) if unit == "items" else None
    if items is not None:
        return -max_penalty * _repeated(items, 1)
    return -max_penalty * _repeated(completion if unit == "characters" else completion.casefold().split(), n)


def _repeated(units: Sequence[Hashable], n: int) -> float:
    """Share of the n-grams that are not the first of their kind; linear in time for a given n."""
    num_grams = len(units) - n + 1
    if num_grams < 1:
        return 0.0
    return 1.0 - len(set(zip(*(units[start:] for start in range(n)), strict=False))) / num_grams


def _json_items(completion: str) -> list[str] | None:
    """The elements of the JSON list that is the answer, or all of it, each in one spelling; or None."""
    text = extract_answer(completion)
    text = (completion if text is None else text).strip()
    text = text.removeprefix("```json").removesuffix("```").strip()
    if not text.startswith("[") or len(text) > _MAX_JSON_CHARS:
        return None
    try:
        items = json.loads(text)
        return [json.dumps(item, sort_keys=True) for item in items]
    except (ValueError, RecursionError):  # the model's text: not JSON, or nested too deep
        return None
