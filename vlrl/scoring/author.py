"""The decorators for authors of rewards: `@reward`, `@prepared_by`, and `Scored` for notes."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Concatenate, TypeVar, overload

Function = TypeVar("Function", bound=Callable[..., Any])
Prepared = TypeVar("Prepared")
Returned = TypeVar("Returned")

_ATTRIBUTE = "vlrl_reward"


@dataclass(frozen=True, slots=True)
class Declaration:
    """What `@reward` says; a plain function has all the defaults.

    Attributes:
        name: of its part in metrics and messages; None is the function's own name.
        range: lowest and highest value; a value outside is a failure of that sample.
        batched: it takes lists (completions, answers, and every context name) of one length and returns a
            list of that length. It scores each sample by itself: what shares a batch is not promised.
        batch_size: most samples of one batched call.
        group: it is batched, and one call holds all completions of one prompt that are to be scored, and no
            others: episodes that failed are not among them, so there may be any number from 1 on.
        gpu: it is bound to the GPU: it runs in a thread of the driver, one call at a time, and not in the
            pool, whose workers see no GPU. A hang there can be reported but not ended.
        higher_is_better: False (an error rate, a distance) asks for negative weights, and turns a gate round.
    """

    name: str | None = None
    range: tuple[float, float] | None = None
    batched: bool = False
    batch_size: int = 64
    group: bool = False
    gpu: bool = False
    higher_is_better: bool = True


@dataclass(frozen=True, slots=True)
class Scored:
    """A reward's value with notes that are logged but not summed.

    Attributes:
        value: what counts; None if the reward does not apply to the sample: then nothing counts or is logged.
        notes: name → finite number, each logged as a part of its own.
        turns: what of the value each turn of the episode earned, in order; they sum to it. Without them the
            last turn earned all. `algorithm.credit` says what they are for.
        explanation: why, for people: kept with the rollout and shown beside its reward.
    """

    value: float | None
    notes: Mapping[str, float] = field(default_factory=dict)
    turns: Sequence[float] = ()
    explanation: str = ""


@overload
def reward(function: Function) -> Function: ...
@overload
def reward(
    *,
    name: str | None = None,
    range: tuple[float, float] | None = None,
    batched: bool = False,
    batch_size: int = 64,
    group: bool = False,
    gpu: bool = False,
    higher_is_better: bool = True,
) -> Callable[[Function], Function]: ...
def reward(function: Any = None, **options: Any) -> Any:
    """Declare what a reward function is; the function itself is returned unchanged. Optional.

    Args:
        function: of a completion, an answer, and by name whatever it wants.
        **options: fields of `Declaration`.

    Raises:
        ValueError: for a range whose ends are the wrong way round, or a batch_size below 1.
    """
    declared = Declaration(**options)
    if declared.group:
        declared = replace(declared, batched=True)
    if declared.range is not None and not declared.range[0] < declared.range[1]:
        raise ValueError(f"@reward: range={declared.range} must be (lowest, highest)")
    if declared.batch_size < 1:
        raise ValueError(f"@reward: batch_size={declared.batch_size} must be at least 1")

    def mark(target: Any) -> Any:
        setattr(target, _ATTRIBUTE, declared)
        return target

    return mark if function is None else mark(function)


def declaration(function: Any) -> Declaration | None:
    """What `@reward` said of a function; None without it."""
    found = getattr(function, _ATTRIBUTE, None)
    return found if isinstance(found, Declaration) else None


def prepared_by(
    prepare: Callable[..., Prepared],
) -> Callable[[Callable[Concatenate[Prepared, ...], Returned]], Callable[..., Returned]]:
    """Give a reward what `prepare` makes of its completion and answer, and all of prepare's options.

    Example:
        def boxes(completion, answer, *, canvases, part="answer") -> Boxes: ...

        @reward(range=(0.0, 1.0))
        @prepared_by(boxes)
        def near(boxes: Boxes, *, sigma: float = 0.05) -> float: ...

    is called as near(completion, answer, *, canvases, sigma=0.05, part="answer", **context). That is its
    signature too, so that the framework passes it what it wants and knows its options, and the "Args:" of
    prepare's docstring stand in its own.

    Args:
        prepare: a function of completion and answer whose options are keyword-only.
    """
    shared = _options(prepare)

    def decorate(function: Callable[Concatenate[Prepared, ...], Returned]) -> Callable[..., Returned]:
        own = _options(function)

        @functools.wraps(function)
        def prepared(completion: Any, answer: Any, **given: Any) -> Returned:
            first = prepare(completion, answer, **{k: given[k] for k in shared if k in given})
            return function(first, **{k: given[k] for k in own if k in given})

        prepared.__signature__ = _joined(prepare, function)  # type: ignore[attr-defined]
        prepared.__doc__ = _with_arguments(function, prepare)
        return prepared

    return decorate


def _options(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    parameters = inspect.signature(function).parameters
    return {name: p for name, p in parameters.items() if p.kind is p.KEYWORD_ONLY}


def _joined(prepare: Callable[..., Any], function: Callable[..., Any]) -> inspect.Signature:
    """(completion, answer, *, what must be given, the function's own options, the shared ones, **context)."""
    shared = _options(prepare).values()
    parameters = [
        *list(inspect.signature(prepare).parameters.values())[:2],
        *(p for p in shared if p.default is p.empty),
        *_options(function).values(),
        *(p for p in shared if p.default is not p.empty),
        inspect.Parameter("context", inspect.Parameter.VAR_KEYWORD, annotation="Any"),
    ]
    return inspect.Signature(parameters, return_annotation=inspect.signature(function).return_annotation)


def _with_arguments(function: Callable[..., Any], prepare: Callable[..., Any]) -> str | None:
    """The function's docstring, its arguments followed by the shared ones."""
    doc = inspect.getdoc(function)
    if doc is None:
        return None
    before, own, after = _split(doc)
    lines = [
        *_described(own, _options(function)),
        *_described(_split(inspect.getdoc(prepare) or "")[1], _options(prepare)),
    ]
    return "\n\n".join(filter(None, [before, "\n".join(["Args:", *lines]) if lines else "", after]))


def _split(doc: str) -> tuple[str, str, str]:
    """A docstring before its arguments, their lines, and what follows."""
    before, found, rest = doc.partition("\n\nArgs:\n")
    if not found:
        before, raises, rest = doc.partition("\n\nRaises:\n")
        return before, "", raises.lstrip("\n") + rest
    arguments, _, after = rest.partition("\n\n")
    return before, arguments, after


def _described(arguments: str, names: Collection[str]) -> list[str]:
    """The lines that describe these arguments."""
    found, kept = [], False
    for line in arguments.splitlines():
        if not line.startswith(" " * 5):
            kept = line.strip().partition(":")[0] in names
        found += [line] if kept else []
    return found
