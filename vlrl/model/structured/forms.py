"""A form of completions as text: one spelling for each, checked before anything is generated.

The form of an action is JSON of one key, such as {"regex": "[0-9]+"}. It goes from whoever gives it, a row,
an environment or the config, to the engine, and with the ledger's turn to the trainer. "" is no form: every
token may follow.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from pydantic import ValidationError

from vlrl.config.rollout import StructuredOutputs
from vlrl.errors import DataError

NUM_KNOWN = 1024
"""Forms that are kept as they were read; a data set whose rows have one each has more."""
REMEDY = "correct it, or leave structured_outputs out"


def form_of(given: Mapping[str, Any] | str | None, where: str) -> str:
    """A form as a row or an environment gives it, in its one spelling.

    Args:
        given: as the section rollout.structured_outputs, or JSON text of that, where keys may be null: tables
            fill them in. None or "" is no form.
        where: names the row or the environment.

    Raises:
        DataError: naming `where`, the key and what is wrong, also for what xgrammar cannot read.
    """
    if not given:
        return ""
    text = given if isinstance(given, str) else _spelled(given, where)
    form, problem = _read(text)
    if problem:
        raise DataError(f"{where}: structured_outputs{problem}; {REMEDY}")
    return form


@lru_cache(NUM_KNOWN)
def structured_of(form: str) -> StructuredOutputs:
    """A form as the section that it is text of."""
    return StructuredOutputs.model_validate(json.loads(form))


def _spelled(given: Any, where: str) -> str:
    if not isinstance(given, Mapping):
        raise DataError(
            f"{where}: structured_outputs is a {type(given).__name__}; give an object such as "
            f'{{"regex": "[0-9]+"}}, or JSON text of one'
        )
    try:
        return json.dumps(given, ensure_ascii=False)
    except (TypeError, ValueError) as error:
        raise DataError(f"{where}: structured_outputs is not JSON: {error}; {REMEDY}") from error


@lru_cache(NUM_KNOWN)
def _read(text: str) -> tuple[str, str]:
    """(the form, what is wrong with it)."""
    try:
        given = json.loads(text)
    except ValueError as error:
        return "", f" is not JSON: {error}"
    if not isinstance(given, dict):
        return "", f" is {text[:40]}, and not an object"
    try:
        structured = StructuredOutputs.model_validate({k: v for k, v in given.items() if v is not None})
    except ValidationError as error:
        first = error.errors()[0]
        key = "".join(f".{part}" for part in first["loc"])
        return "", f"{key}: {first['msg'].removeprefix('Value error, ')}"
    problem = _unread(structured)
    return structured.form, f".{structured.given}: {problem}" if problem else ""


def _unread(structured: StructuredOutputs) -> str:
    """What xgrammar says of a form that it cannot read; "" if it can."""
    from xgrammar import Grammar

    kind, text = structured.kind_and_text
    readers: Mapping[str, Callable[[str], Any]] = {
        "json_schema": Grammar.from_json_schema,
        "regex": Grammar.from_regex,
        "grammar": Grammar.from_ebnf,
        "structural_tag": Grammar.from_structural_tag,
    }
    try:
        readers[kind](text)
    except (RuntimeError, ValueError) as error:
        return " ".join(str(error).split())
    return ""
