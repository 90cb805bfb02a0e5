"""Actions of Gymnasium's spaces as JSON values."""

from __future__ import annotations

from typing import Any

import numpy as np

from vlrl.errors import ConfigError


class NoAction(ValueError):
    """A text or value that is not an action; the message says why, to the model."""


def from_json(space: Any, value: Any) -> Any:
    """The action that a JSON value stands for; numbers may be ints or whole floats where ints are meant.

    Raises:
        NoAction: saying what is wrong.
    """
    from gymnasium import spaces

    if isinstance(space, spaces.Dict):
        if not isinstance(value, dict) or value.keys() != space.spaces.keys():
            raise NoAction(f"give an object with exactly the keys {', '.join(map(repr, space.spaces))}")
        action: Any = {key: from_json(part, value[key]) for key, part in space.spaces.items()}
    elif isinstance(space, spaces.Tuple):
        if not isinstance(value, list) or len(value) != len(space.spaces):
            raise NoAction(f"give a list of {len(space.spaces)} values")
        action = tuple(from_json(part, item) for part, item in zip(space.spaces, value, strict=True))
    elif isinstance(space, spaces.Text):
        action = value
    elif isinstance(space, spaces.Discrete):
        action = np.int64(_numbers(np.dtype(np.int64), (), value))
    else:
        action = _numbers(space.dtype, space.shape, value)
    if not space.contains(action):
        raise NoAction(f"{value!r:.60} is not {describe(space)}")
    return action


def to_json(space: Any, action: Any) -> Any:
    """An action as a value that json.dumps takes, in the fewest digits that give it back."""
    from gymnasium import spaces

    if isinstance(space, spaces.Dict):
        return {key: to_json(part, action[key]) for key, part in space.spaces.items()}
    if isinstance(space, spaces.Tuple):
        return [to_json(part, item) for part, item in zip(space.spaces, action, strict=True)]
    if isinstance(space, spaces.Text):
        return action
    return _plain(np.asarray(action, space.dtype))


def describe(space: Any) -> str:
    """Describe in words what JSON an action is.

    Raises:
        ConfigError: for a space whose actions have no such form.
    """
    from gymnasium import spaces

    if isinstance(space, spaces.Dict):
        return f"an object of {', '.join(f'{key!r}: {describe(part)}' for key, part in space.spaces.items())}"
    if isinstance(space, spaces.Tuple):
        return f"a list of {', '.join(map(describe, space.spaces))}"
    if isinstance(space, spaces.Text):
        return f"a text of {space.min_length} to {space.max_length} characters"
    if isinstance(space, spaces.Discrete):
        return f"a whole number from {space.start} to {space.start + space.n - 1}"
    if isinstance(space, spaces.Box | spaces.MultiDiscrete | spaces.MultiBinary):
        sizes = " lists of ".join(map(str, space.shape))
        return f"a list of {sizes} {number_words(space)}" if sizes else number_words(space, one=True)
    raise ConfigError(
        f"the action space {space} has no text form; name actions by the option actions, or wrap the "
        "environment so that its actions are Discrete, Box, MultiDiscrete, MultiBinary, Text, Dict or Tuple"
    )


def bounds(space: Any) -> tuple[Any, Any]:
    """Lowest and highest value of each number of a Box, MultiDiscrete or MultiBinary, as arrays."""
    from gymnasium import spaces

    if isinstance(space, spaces.Box):
        return space.low, space.high
    if isinstance(space, spaces.MultiDiscrete):
        return space.start, space.start + space.nvec - 1
    return np.zeros(space.shape, np.int8), np.ones(space.shape, np.int8)


def number_words(space: Any, one: bool = False) -> str:
    """What the numbers of an array space are, or its only one is, in words."""
    low, high = (np.asarray(bound) for bound in bounds(space))
    whole = "whole number" if np.issubdtype(space.dtype, np.integer) else "number"
    whole = f"a {whole}" if one else f"{whole}s"
    if low.size and (low == low.flat[0]).all() and (high == high.flat[0]).all():
        return f"{whole} from {_plain(low.flat[0])} to {_plain(high.flat[0])}"
    return f"{whole}, least {_plain(low)}, greatest {_plain(high)}"


def _numbers(dtype: Any, shape: tuple[int, ...], value: Any) -> Any:
    """A nested list of numbers as an array of exactly this shape; none overflows or is rounded to an int."""
    flat = _leaves(shape, value)
    if np.issubdtype(dtype, np.integer):
        info = np.iinfo(dtype)
        if any(item != int(item) for item in flat):
            raise NoAction("give whole numbers")
        flat = [int(item) for item in flat]
        if any(not info.min <= item <= info.max for item in flat):
            raise NoAction("a number is out of range")
    with np.errstate(over="ignore"):
        array = np.asarray(flat, dtype).reshape(shape)
    if not np.isfinite(array).all():
        raise NoAction("a number is out of range")
    return array


def _leaves(shape: tuple[int, ...], value: Any) -> list[Any]:
    if not shape:
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < float("inf"):
            raise NoAction(f"{value!r:.60} is not a number")
        return [value]
    if not isinstance(value, list) or len(value) != shape[0]:
        raise NoAction(f"give a list of {shape[0]}")
    return [leaf for item in value for leaf in _leaves(shape[1:], item)]


def _plain(value: Any) -> Any:
    """Numbers of an array as Python's; a float32 keeps its own few digits (0.1, not 0.10000000149011612)."""
    array = np.asarray(value)
    if array.ndim:
        return [_plain(item) for item in array]
    return float(str(array[()])) if np.issubdtype(array.dtype, np.floating) else int(array)
