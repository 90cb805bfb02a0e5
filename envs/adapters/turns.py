"""What adapters of other libraries' environments share: prompt, observation, success, names."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from PIL import Image

from vlrl.envs.action_text import CLOSING, OPENING, last_action
from vlrl.envs.adapters.gymnasium.grammar import MAX_CHARS, Grammar
from vlrl.envs.adapters.gymnasium.spaces import NoAction
from vlrl.errors import ConfigError
from vlrl.protocols import Observation, StepResult
from vlrl.types import ByteArray

RESERVED = frozenset({"success", "invalid", "state"})
SUCCESS_KEYS = ("info", "reward_at_least", "return_at_least")


@dataclass(frozen=True)
class AdapterTurn:
    """What the other library's environment gave: Gymnasium's five values and its image, [h, w, 3] uint8."""

    observation: Any
    image: ByteArray | None
    reward: float = 0.0
    terminated: bool = False
    truncated: bool = False
    info: Mapping[str, Any] = field(default_factory=dict)

    @property
    def ended(self) -> bool:
        """Whether it is the last of its episode."""
        return self.terminated or self.truncated


@dataclass(frozen=True)
class Showing:
    """Options that all of these adapters have: how a turn becomes an observation and a success.

    Attributes:
        adapter: its registered name, for errors.
        image_size: the longer side of an image in pixels, or [width, height]; None leaves it as drawn.
        text: str.format template of an observation's text: {observation}, {reward}, {step}, {info}; those of
            the first observation are of reward 0 and step 0.
        success: {info: key}, {reward_at_least: x} of the last step, or {return_at_least: x} of the whole
            episode; None is an episode that terminates with a reward above 0.
    """

    adapter: str
    image_size: int | Sequence[int] | None = None
    text: str = ""
    success: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        """Refuse what cannot be used."""
        sizes = [self.image_size] if isinstance(self.image_size, int) else list(self.image_size or [1, 1])
        if len(sizes) > 2 or not all(type(size) is int and size > 0 for size in sizes):
            raise ConfigError(
                f"env {self.adapter}: option image_size={self.image_size!r}; give the longer side in pixels, "
                "or [width, height]"
            )
        try:
            self.words(AdapterTurn(None, None), 0)
        except (KeyError, IndexError, ValueError, AttributeError, TypeError) as error:
            raise ConfigError(
                f"env {self.adapter}: option text={self.text!r}: {error!r}; the template's fields are "
                "{observation}, {reward}, {step} and {info}"
            ) from error
        rule = self.success
        if rule is not None and (len(rule) != 1 or not rule.keys() <= set(SUCCESS_KEYS)):
            raise ConfigError(
                f"env {self.adapter}: option success={dict(rule)}; give one of {', '.join(SUCCESS_KEYS)}"
            )

    def words(self, turn: AdapterTurn, num_steps: int) -> str:
        """The text of an observation."""
        return self.text.format(
            observation=as_text(turn.observation), reward=turn.reward, step=num_steps, info=turn.info
        )

    def images(self, turn: AdapterTurn) -> list[ByteArray]:
        """The turn's image in the size that was asked for, if there is one."""
        if turn.image is None:
            return []
        if self.image_size is None:
            return [turn.image]
        height, width = turn.image.shape[:2]
        if isinstance(self.image_size, int):
            scale = self.image_size / max(width, height)
            size = (max(1, round(width * scale)), max(1, round(height * scale)))
        else:
            size = (self.image_size[0], self.image_size[-1])
        return [np.asarray(Image.fromarray(turn.image).resize(size, Image.Resampling.BILINEAR))]

    def succeeded(self, turn: AdapterTurn, episode_return: float) -> bool:
        """Whether a turn that ends an episode is a success."""
        if self.success is None:
            return turn.terminated and turn.reward > 0
        (key, value), *_ = self.success.items()
        if key == "info":
            return bool(turn.info.get(value, False))
        return bool((turn.reward if key == "reward_at_least" else episode_return) >= value)


class Episode:
    """One player's side of an episode: turns in, what vlrl's contract wants out."""

    def __init__(self, showing: Showing, grammar: Grammar) -> None:
        self._showing, self._grammar = showing, grammar
        self._turn: AdapterTurn | None = None
        self._early = self._return = 0.0
        self._num_steps = 0

    @property
    def ended(self) -> bool:
        """Whether the last turn was the last."""
        return self._turn is not None and self._turn.ended

    def begin(self, turn: AdapterTurn) -> Observation:
        """What the player is shown first; a reward that came before is given with its first result."""
        self._turn, self._early, self._return = turn, turn.reward, turn.reward
        return self.observation()

    def observation(self, said: str = "") -> Observation:
        """The present state, after something that is said about it."""
        words = self._showing.words(self._now, self._num_steps)
        return Observation("\n".join(filter(None, (said, words))), self._showing.images(self._now))

    def read(self, text: str) -> Any:
        """The action in a model's text.

        Raises:
            NoAction: if there is none.
        """
        said = last_action(text)
        if said is None or len(said) > MAX_CHARS:
            raise NoAction("there is no action")
        return self._grammar.parse(said)

    def refuse(self, error: NoAction) -> StepResult:
        """The answer to a text that is not an action: what is wrong, and how an action looks."""
        form = f"An action is {self._grammar.describe()}, such as {example(self._grammar)}"
        observation = self.observation(f"No action was taken: {error}. {form}")
        info = {"success": False, "invalid": True, "state": state_name(self._now.observation)}
        return StepResult(observation, 0.0, False, False, info)

    def after(self, turn: AdapterTurn) -> StepResult:
        """The result of an action, or what a player is shown first if that ends or earns something."""
        self._num_steps += self._turn is not None
        early, self._early = self._early, 0.0
        self._turn = turn
        self._return += turn.reward
        numbers = plain_numbers(turn.info).items()
        info: dict[str, Any] = {key: value for key, value in numbers if key not in RESERVED}
        info["success"] = turn.ended and self._showing.succeeded(turn, self._return)
        info["invalid"] = False
        info["state"] = state_name(turn.observation)
        return StepResult(self.observation(), early + turn.reward, turn.terminated, turn.truncated, info)

    @property
    def _now(self) -> AdapterTurn:
        assert self._turn is not None, "a player is shown something before it is asked"
        return self._turn


def prompt(instructions: str, grammar: Grammar) -> str:
    """The system message of an environment whose actions this grammar reads."""
    form = (
        f"Answer each observation with one action. An action is {grammar.describe()}. You may think first; "
        f"then end with your action, such as {example(grammar)}"
    )
    return f"{instructions}\n{form}" if instructions else form


def example(grammar: Grammar) -> str:
    """The same well-formed action every time."""
    return tagged(grammar, grammar.sample(np.random.default_rng(0)))


def tagged(grammar: Grammar, action: Any) -> str:
    """An action as a model would write it."""
    return f"{OPENING}{grammar.write(action)}{CLOSING}"


def as_text(observation: Any) -> str:
    """An observation in words; a board's two planes, [h, w, 2] of 0 and 1, as X (own) and O (the other's)."""
    if not (isinstance(observation, np.ndarray) and observation.ndim == 3 and observation.shape[2] == 2):
        return str(observation)
    if not np.isin(observation, (0, 1)).all():
        return str(observation)
    squares = np.where(observation[..., 0] == 1, "X", np.where(observation[..., 1] == 1, "O", "."))
    return "\n".join(" ".join(row) for row in squares)


def plain_numbers(info: Mapping[str, Any]) -> dict[str, float | int | bool]:
    """The entries that are single finite numbers."""
    found: dict[str, float | int | bool] = {}
    for key, value in info.items():
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(key, str) and isinstance(value, int | float) and math.isfinite(value):
            found[key] = value
    return found


def state_name(observation: Any) -> str:
    """A name that equal observations share: a short number is its own, anything else has a digest."""
    if isinstance(observation, int | np.integer):
        return str(int(observation))
    digest = hashlib.sha256()
    _feed(digest, observation)
    return digest.hexdigest()[:16]


def _feed(digest: Any, value: Any) -> None:
    """Every part marked with what it is and how long, so that different values feed different bytes."""
    if isinstance(value, Mapping):
        digest.update(f"map{len(value)}:".encode())
        for key in sorted(value, key=repr):
            _feed(digest, repr(key))
            _feed(digest, value[key])
    elif isinstance(value, list | tuple):
        digest.update(f"list{len(value)}:".encode())
        for item in value:
            _feed(digest, item)
    elif isinstance(value, np.ndarray | np.generic) and value.dtype != object:
        digest.update(f"{value.dtype.str}{value.shape}:".encode() + value.tobytes())
    else:
        text = repr(value).encode()
        digest.update(f"{type(value).__name__}{len(text)}:".encode() + text)
