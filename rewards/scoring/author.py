"""What a reward's author may say about a function: `@reward(...)`, and a value with notes: `Scored`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar, overload

Function = TypeVar("Function", bound=Callable[..., Any])

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
    """

    value: float | None
    notes: Mapping[str, float] = field(default_factory=dict)
    turns: Sequence[float] = ()


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
