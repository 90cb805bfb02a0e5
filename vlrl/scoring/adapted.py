"""A function of another project as vlrl calls it, and the forms in which such functions take messages."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from vlrl.scoring.author import Declaration, Scored

Invoke: TypeAlias = Callable[[Any, Any, Mapping[str, Any]], Any]


@dataclass(frozen=True, slots=True)
class Adapted:
    """A reward of another project, with what its calls need.

    Attributes:
        parameters: its own, for checking options.
        wanted: context names and metadata keys it is to be given.
        takes_rest: give it all of the metadata.
        batched: whether a call takes lists.
        is_async: whether a call returns an awaitable.
        bind: options → (completion, answer, context) → what it returned.
    """

    parameters: list[inspect.Parameter]
    wanted: frozenset[str]
    takes_rest: bool
    batched: bool
    is_async: bool
    bind: Callable[[Mapping[str, Any]], Invoke]

    def declare(self, declared: Declaration) -> Declaration:
        """What the author said, with this convention's batching."""
        return replace(declared, batched=self.batched)


def then(returned: Any, finish: Callable[[Any], Any]) -> Any:
    """finish(returned), later if it has to be awaited."""
    if not inspect.isawaitable(returned):
        return finish(returned)

    async def later() -> Any:
        return finish(await returned)

    return later()


def each(returned: Any, finish: Callable[[Any], Any]) -> list[Any]:
    """finish(value) of every value of a list, an array or a tensor; a tensor without dimensions holds one."""
    values = returned.tolist() if hasattr(returned, "tolist") else list(returned)
    return [finish(value) for value in (values if isinstance(values, list) else [values])]


def total(score: Any, key: str) -> Scored:
    """A number, or a mapping of which one entry counts and the other numbers are logged.

    Raises:
        ValueError: for a mapping without that entry.
    """
    if not isinstance(score, Mapping):
        return Scored(score)
    if key not in score:
        raise ValueError(f"a score that is a mapping must have {key!r}, not {repr(dict(score))[:100]}")
    notes = {name: value for name, value in score.items() if name != key and _is_number(value)}
    return Scored(score[key], notes)


def assistant(completion: str) -> list[dict[str, str]]:
    """A completion as a list of one message."""
    return [{"role": "assistant", "content": completion}]


def plain_messages(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Messages as lists of dicts."""
    return [dict(message) for message in messages]


def last_text(messages: Sequence[Mapping[str, Any]]) -> str:
    """The texts of the last message, without its media."""
    if not messages:
        return ""
    content = messages[-1].get("content", "")
    if isinstance(content, str):
        return content
    return "".join(part["text"] for part in content if part.get("type") == "text")


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return not isinstance(value, str | bytes)
