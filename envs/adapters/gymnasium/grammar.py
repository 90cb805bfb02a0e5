"""Declared grammars: which texts are which actions of a Gymnasium space.

The option `actions` of the adapters is one of

    null                        the space's own: Discrete numbered, arrays as numbers, anything else as JSON
    [left, down, right, up]     a word for each action of a Discrete space, in order
    {push: 2, wait: 0}          words for some actions, of any space, given as JSON values
    {type: floats}              numbers one after another, also with low and high that narrow a Box
    {type: json}                a JSON value, also with low and high
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from vlrl.envs.adapters.gymnasium.spaces import NoAction, describe, from_json, number_words, to_json
from vlrl.errors import ConfigError
from vlrl.parsing.strict_json import Unreadable, strict_json

MAX_CHARS = 20_000
"""Longer texts are not an action."""

NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
WHOLE = re.compile(r"[+-]?[0-9]{1,20}")


class Grammar(Protocol):
    """Which texts are which actions."""

    space: Any
    """Gymnasium's space that the actions are of."""

    def parse(self, text: str) -> Any:
        """The action of a text.

        Raises:
            NoAction: saying, to the model, what is wrong.
        """
        ...

    def write(self, action: Any) -> str | None:
        """A text that `parse` gives the action back for; None if it has none."""
        ...

    def describe(self) -> str:
        """What an action is, for the model: follows "an action is"."""
        ...

    def sample(self, rng: np.random.Generator) -> Any:
        """An action, drawn without looking."""
        ...


class Words:
    """One word, or a few, for each action."""

    def __init__(self, space: Any, words: Mapping[str, Any], description: str) -> None:
        """Take words in lower case with single spaces, and the actions of the space they stand for."""
        self.space, self.words, self._description = space, words, description
        backwards = reversed(list(words.items()))  # of two words for an action the first is written
        self._word_of = {json.dumps(to_json(space, action)): word for word, action in backwards}

    def parse(self, text: str) -> Any:
        """The action of a word; case and space do not matter."""
        word = _normal(text)
        if word not in self.words:
            raise NoAction(f"{text!r:.60} is not {self._description}")
        return self.words[word]

    def write(self, action: Any) -> str | None:
        """The first word of the action."""
        return self._word_of.get(json.dumps(to_json(self.space, action)))

    def describe(self) -> str:
        """All the words, or from which to which number."""
        return self._description

    def sample(self, rng: np.random.Generator) -> Any:
        """Any of the words' actions, evenly."""
        return list(self.words.values())[int(rng.integers(len(self.words)))]


class _OfSpace:
    """A grammar that has texts for all of a space."""

    def __init__(self, space: Any) -> None:
        self.space = copy.deepcopy(space)  # sampling must not touch the environment's own generator

    def sample(self, rng: np.random.Generator) -> Any:
        """Sample as the space does."""
        self.space.seed(int(rng.integers(2**31)))
        return self.space.sample()


class Numbers(_OfSpace):
    """The numbers of a Box, MultiDiscrete or MultiBinary in order, separated by spaces or commas."""

    def parse(self, text: str) -> Any:
        """The array of the numbers."""
        size = int(np.prod(self.space.shape))
        words = re.split(r"\s*,\s*|\s+", text.strip())
        if len(words) != size or not all(NUMBER.fullmatch(word) for word in words):
            raise NoAction(f"{text!r:.60} is not {self.describe()}")
        # Python's own integers: a float has too few digits for the largest.
        values = [int(word) if WHOLE.fullmatch(word) else float(word) for word in words]
        return from_json(self.space, _nested(values, self.space.shape))

    def write(self, action: Any) -> str:
        """Numbers with as few digits as give them back."""
        return " ".join(re.findall(r"[^][, ]+", json.dumps(to_json(self.space, action))))

    def describe(self) -> str:
        """How many of them, and from what to what."""
        size = int(np.prod(self.space.shape))
        if size == 1:
            return number_words(self.space, one=True)
        return f"{size} {number_words(self.space)}, separated by spaces"


class Json(_OfSpace):
    """A JSON value: arrays as lists, Dict as an object, Tuple as a list. Its whole numbers end at 2**53."""

    def parse(self, text: str) -> Any:
        """The action of the JSON text."""
        try:
            return from_json(self.space, strict_json(text))
        except (Unreadable, RecursionError) as error:
            raise NoAction(f"{text!r:.60} is not {self.describe()}: {error!s:.120}") from error

    def write(self, action: Any) -> str:
        """JSON on one line."""
        return json.dumps(to_json(self.space, action))

    def describe(self) -> str:
        """The space in words."""
        return f"JSON, {describe(self.space)}"


def grammar_of(space: Any, actions: Mapping[str, Any] | Sequence[str] | None, adapter: str) -> Grammar:
    """The grammar of an action space that the option `actions` declares.

    Raises:
        ConfigError: if the two do not fit.
    """
    from gymnasium import spaces

    place = f"env {adapter}: option actions"
    if isinstance(actions, Mapping) and isinstance(actions.get("type"), str):
        return _typed(space, actions, place)
    if actions is None:
        if isinstance(space, spaces.Discrete):
            numbers = range(int(space.start), int(space.start + space.n))
            return Words(space, {str(number): np.int64(number) for number in numbers}, describe(space))
        arrays = isinstance(space, spaces.Box | spaces.MultiDiscrete | spaces.MultiBinary)
        describe(space)  # refuses a space that has no text form
        return Numbers(space) if arrays else Json(space)
    if not isinstance(actions, Mapping):
        if not isinstance(space, spaces.Discrete) or isinstance(actions, str) or len(actions) != space.n:
            raise ConfigError(
                f"{place}={actions!r}: a list names every action of a Discrete space, not {space}"
            )
        actions = {word: int(space.start) + index for index, word in enumerate(actions)}
    if not actions or not all(isinstance(word, str) and _normal(word) for word in actions):
        raise ConfigError(f"{place}={actions!r}: give at least one word; quote words such as 'yes' and '1'")
    words: dict[str, Any] = {}
    for word, value in actions.items():
        if _normal(word) in words:
            raise ConfigError(f"{place}: {word!r} stands twice; case and space make no difference")
        try:
            words[_normal(word)] = from_json(space, value)
        except NoAction as error:
            raise ConfigError(f"{place}: {word!r}: {value!r} is not an action of {space}: {error}") from error
    return Words(space, words, f"one of: {', '.join(words)}")


def _typed(space: Any, actions: Mapping[str, Any], place: str) -> Grammar:
    from gymnasium import spaces

    kinds: dict[str, type[Numbers] | type[Json]] = {"floats": Numbers, "json": Json}
    if actions["type"] not in kinds or actions.keys() - {"type", "low", "high"}:
        raise ConfigError(f"{place}={dict(actions)}: give type: floats or json, and low and high if wanted")
    arrays = isinstance(space, spaces.Box | spaces.MultiDiscrete | spaces.MultiBinary)
    if actions["type"] == "floats" and not arrays:
        raise ConfigError(f"{place}: {space} is not an array of numbers; give type: json")
    describe(space)
    if actions.keys() & {"low", "high"}:
        if not isinstance(space, spaces.Box):
            raise ConfigError(f"{place}: low and high narrow a Box, not {space}")
        space = _narrowed(space, actions, place)
    return kinds[actions["type"]](space)


def _narrowed(space: Any, actions: Mapping[str, Any], place: str) -> Any:
    from gymnasium import spaces

    try:
        low, high = (
            np.broadcast_to(np.asarray(actions.get(name, bound), space.dtype), space.shape)
            for name, bound in (("low", space.low), ("high", space.high))
        )
    except (ValueError, TypeError) as error:
        raise ConfigError(f"{place}: low and high must be numbers of shape {space.shape}: {error}") from error
    if (low < space.low).any() or (high > space.high).any() or (low > high).any():
        raise ConfigError(f"{place}: low={low}, high={high} is not within {space}")
    return spaces.Box(low, high, space.shape, space.dtype)


def _normal(word: str) -> str:
    return " ".join(word.split()).casefold()


def _nested(values: list[Any], shape: tuple[int, ...]) -> Any:
    """A flat list as lists in lists of this shape."""
    if not shape:
        return values[0]
    inner = len(values) // shape[0] if shape[0] else 0
    return [_nested(values[i * inner : (i + 1) * inner], shape[1:]) for i in range(shape[0])]
