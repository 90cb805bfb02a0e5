"""A reward found by name: what it takes, where it runs, how it is called, and what its results mean."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from vlrl.errors import ConfigError
from vlrl.foreign.failure import MESSAGE_CHARS, Failure, finite
from vlrl.registry import resolve
from vlrl.registry.signature import is_async, named, require_options, typed_options
from vlrl.rounding import summed
from vlrl.scoring.adapters import Adapter, adapt
from vlrl.scoring.author import Declaration, Scored, declaration


class Value(NamedTuple):
    """What a reward returned, checked.

    Attributes:
        number: what counts.
        parts: name → number of every part to log.
        turns: what of the number each turn earned; empty if the reward does not say.
        explanation: why, for people; "" if the reward does not say.
    """

    number: float
    parts: dict[str, float]
    turns: tuple[float, ...] = ()
    explanation: str = ""


EXPLANATION_CHARS = 2000
"""Kept of an explanation."""

CONTEXT_NAMES = frozenset(
    {
        *("prompt", "media", "canvases", "sample", "trajectory", "turns", "completion_ids", "num_tokens"),
        *("episode_return", "success", "step"),
    }
)
"""What a reward may ask for by name beside the keys of the sample's metadata, which may not hide these."""

_TOLERANCE = 1e-6
"""Slack of a declared range, for rounding."""


class RewardSource(NamedTuple):
    """All that another process needs to find the same reward."""

    name: str
    options: Mapping[str, Any]
    adapter: Adapter


@dataclass(frozen=True, slots=True)
class RewardFunction:
    """One reward with its options.

    Attributes:
        source: what it was found by.
        label: its name in metrics and messages.
        function: as its author wrote it.
        declared: by `@reward`, by the adapter, or the defaults.
        is_async: it returns awaitables.
        filled: names of the parameters that take completion and answer: no metadata is passed as these.
        wanted: context names and metadata keys that it asks for by name.
        required: metadata keys that it cannot do without, as far as its signature says.
        takes_rest: it takes **keywords, and so all of the metadata; media, prompt and the like are
            given only to who names them, as they are large.
    """

    source: RewardSource
    label: str
    function: Callable[..., Any]
    declared: Declaration
    is_async: bool
    filled: frozenset[str]
    wanted: frozenset[str]
    required: frozenset[str]
    takes_rest: bool
    invoke: Callable[[Any, Any, Mapping[str, Any]], Any]

    @property
    def in_driver(self) -> bool:
        """True if it runs in the process of the run; else in the pool."""
        return self.is_async or self.declared.gpu

    def wants(self, name: str) -> bool:
        """True if a context name or metadata key is to be sent to it; what an option sets is not."""
        if name in self.source.options or name in self.filled:
            return False
        return name in self.wanted or (self.takes_rest and name not in CONTEXT_NAMES)

    def results(self, returned: Any, num_samples: int | None) -> list[Value | Failure]:
        """What it returned, checked: one result a sample.

        Args:
            returned: by one call.
            num_samples: of a batched call; None for a single one.

        Raises:
            ValueError: if a batched call returned anything but a list of that length.
        """
        if num_samples is None:
            return [self._checked(returned)]
        items = returned.tolist() if hasattr(returned, "tolist") else returned
        if not isinstance(items, Sequence) or isinstance(items, str):
            raise ValueError(f"a batched reward must return a list, not {type(returned).__name__}")
        if len(items) != num_samples:
            raise ValueError(f"returned {len(items)} values for {num_samples} samples")
        return [self._checked(item) for item in items]

    def _checked(self, returned: Any) -> Value | Failure:
        try:
            value = as_value(returned, self.label)
        except ValueError as error:
            return Failure(str(error)[:MESSAGE_CHARS])
        low, high = self.declared.range or (value.number, value.number)
        if value.parts and not low - _TOLERANCE <= value.number <= high + _TOLERANCE:
            return Failure(f"{self.label}={value.number!r} is outside its declared range [{low}, {high}]")
        return value


def find_reward(
    name: str, options: Mapping[str, Any] | None = None, adapter: Adapter = "auto"
) -> RewardFunction:
    """Find a reward and see what it takes.

    Args:
        name: a registered name, or path/to/file.py:function.
        options: passed to it by name.
        adapter: whose convention the function follows.

    Raises:
        ConfigError: for an unknown name, a file that fails, an option that it would never see, or one of
            another type than it says.
    """
    options = dict(options or {})
    found = resolve("rewards", name)
    path, dot_py, attribute = name.rpartition(".py:")
    source = RewardSource(f"{Path(path + '.py').resolve()}:{attribute}" if dot_py else name, options, adapter)
    adapted = adapt(found, adapter, name)
    declared = declaration(found) or Declaration()
    if adapted is None:
        if not callable(found):
            raise ConfigError(f"reward {name!r} is a {type(found).__name__}, not a function")
        order, parameters = _filled(found, name, batched=declared.batched)
        names, takes_rest = named(parameters)
        filled, waits = frozenset(order), is_async(found)
        wanted = names - filled
        invoke = _plain(found, order, typed_options(f"reward {name!r}", found, options))
        required = wanted & {p.name for p in parameters if p.default is p.empty}
    else:
        filled = required = frozenset()  # what a missing column means is for the function to say
        declared, waits = adapted.declare(declared), adapted.is_async
        parameters, wanted, takes_rest = adapted.parameters, adapted.wanted, adapted.takes_rest
        invoke = adapted.bind(options)
    require_options(f"reward {name!r}", options, parameters)
    label = declared.name or name.rsplit(":", 1)[-1]
    required -= CONTEXT_NAMES | options.keys()
    return RewardFunction(source, label, found, declared, waits, filled, wanted, required, takes_rest, invoke)


def require_single(functions: Sequence[RewardFunction], credit: str) -> None:
    """Raise ConfigError for a reward of whole groups, where a greedy completion is to be scored by itself."""
    for function in functions:
        if function.declared.group:
            raise ConfigError(
                f"reward {function.label!r} compares the completions of a group, and with "
                f"algorithm.credit={credit} a greedy completion is scored by itself; give the reward "
                "weight=0, or set algorithm.credit=episode"
            )


def as_value(returned: Any, label: str) -> Value:
    """What a reward returned.

    A number is its own part; a mapping's parts are summed; of a `Scored` the notes only inform.

    Raises:
        ValueError: for anything else, and for a number that is not finite.
    """
    if type(returned) is float and math.isfinite(returned):
        return Value(returned, {label: returned})
    if isinstance(returned, Scored):
        if returned.value is None:
            return Value(0.0, {})
        value = finite(returned.value, label)
        parts = {label: value, **{n: finite(v, n) for n, v in returned.notes.items()}}
        explanation = str(returned.explanation)[:EXPLANATION_CHARS]
        return Value(value, parts, _turns(returned.turns, value, label), explanation)
    if isinstance(returned, Mapping):
        if not returned:
            raise ValueError("returned no parts")
        if "overall" in returned and len(returned) > 1:  # EasyR1's total and its summands
            raise ValueError(
                "returned 'overall' beside its parts, which would count twice: say adapter: easyr1, or "
                "return Scored(overall, parts)"
            )
        parts = {str(name): finite(number, str(name)) for name, number in returned.items()}
        return Value(finite(summed(parts.values()), label), parts)
    value = finite(returned, label)
    return Value(value, {label: value})


def _turns(given: Sequence[float], value: float, label: str) -> tuple[float, ...]:
    """What each turn earned, which must be the value in all."""
    turns = tuple(finite(number, f"{label}.turns") for number in given)
    if turns and abs(summed(turns) - value) > _TOLERANCE * max(1.0, *map(abs, turns)):
        raise ValueError(f"{label}: its turns sum to {summed(turns):g}, its value is {value:g}")
    return turns


def _filled(function: Any, name: str, *, batched: bool) -> tuple[list[str], list[inspect.Parameter]]:
    """The parameters that take the completion and, if any does, the answer; and all of them.

    By name, if they are called so; else the completion is the first positional parameter, and the answer the
    next one that has no default and is not a context name.
    """
    parameters = list(inspect.signature(function).parameters.values())
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    names, _ = named(parameters)
    found: list[str] = []
    for wanted in ("completion", "answer"):
        exact = [n for n in (wanted, f"{wanted}s" if batched else wanted) if n in names]
        others = [
            p.name
            for p in positional
            if p.name not in (*found, "completion", "answer")
            and (wanted == "completion" or (p.default is p.empty and p.name not in CONTEXT_NAMES))
        ]
        found += exact[:1] or others[:1]
        if not found:
            raise ConfigError(f"reward {name!r} takes no completion; give it one positional parameter")
    return found, parameters


def _plain(
    function: Callable[..., Any], filled: Sequence[str], options: Mapping[str, Any]
) -> Callable[[Any, Any, Mapping[str, Any]], Any]:
    """A call of a function in vlrl's own convention."""
    parameters = inspect.signature(function).parameters
    keyword_only = inspect.Parameter.KEYWORD_ONLY
    if (
        len(filled) == 2
        and list(parameters)[:2] == list(filled)
        and parameters[filled[-1]].kind is not keyword_only
    ):
        return lambda completion, answer, context: function(completion, answer, **context, **options)

    def call(completion: Any, answer: Any, context: Mapping[str, Any]) -> Any:
        given = dict(zip(filled, (completion, answer), strict=False))
        first = [given.pop(n) for n in list(given) if parameters[n].kind is inspect.Parameter.POSITIONAL_ONLY]
        return function(*first, **given, **context, **options)

    return call
