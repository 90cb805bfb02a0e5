"""How a model writes an action of an OpenEnv environment: as JSON, as a word, or as plain text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from pydantic import BaseModel, ValidationError

from vlrl.envs.action_text import CLOSING, OPENING, last_action
from vlrl.envs.adapters.contents import sendable
from vlrl.envs.adapters.json_values import random_value
from vlrl.errors import ConfigError
from vlrl.parsing.strict_json import Unreadable
from vlrl.parsing.tool_calls import read_json
from vlrl.registry import resolve

MAX_CHARS = 20_000
"""Longest action."""


class NoOpenEnvAction(ValueError):
    """A text that is not an action; the message says why and how one looks."""


class ActionForm:
    """Reads actions, draws them, and says what they look like.

    Attributes:
        instructions: for the system prompt.
    """

    def __init__(
        self,
        words: Mapping[str, Mapping[str, Any]] | None,
        field: str | None,
        typed: str | None,
        schema: Mapping[str, Any] | None,
    ) -> None:
        """Choose the form; at most one of words, field and typed.

        Args:
            words: word → action.
            field: the action's only field, which the whole text becomes.
            typed: ./file.py:Class, a pydantic model that checks the action here.
            schema: of the server, for JSON; where there is a type, its own is used.

        Raises:
            ConfigError: for several forms, or a class that is not a pydantic model.
        """
        chosen = [
            n for n, v in [("actions", words), ("field", field), ("action_class", typed)] if v is not None
        ]
        if len(chosen) > 1:
            raise ConfigError(f"openenv: {' and '.join(chosen)} are given; one says how an action is written")
        if words is not None and (not words or not all(isinstance(v, Mapping) for v in words.values())):
            raise ConfigError(
                f"openenv: actions={words!r} must map words to actions, such as left: {{move: 0}}"
            )
        self._words = {word.lower(): dict(action) for word, action in words.items()} if words else None
        self._field = field
        self._typed = _model(typed) if typed else None
        self._schema = self._typed.model_json_schema() if self._typed else dict(schema or {})
        self.instructions = f"Write your action as {self._example()}"
        if not (self._words or self._field):
            shown = {
                key: self._schema[key] for key in ("properties", "required", "$defs") if key in self._schema
            }
            self.instructions += f", a JSON object of this form:\n{json.dumps(shown, ensure_ascii=False)}"

    def read(self, text: str) -> dict[str, Any]:
        """The action that a text asks for.

        Raises:
            NoAction: if it asks for none.
        """
        said = last_action(text)
        if said is None:
            raise NoOpenEnvAction(f"There is no action. {self.instructions}")
        if len(said) > MAX_CHARS:
            raise NoOpenEnvAction(
                f"The action has {len(said)} characters, {MAX_CHARS} at most. {self.instructions}"
            )
        if self._field is not None:
            return {self._field: sendable(said)}
        if self._words is not None:
            if said.lower() not in self._words:
                raise NoOpenEnvAction(f"{said!r:.60} is no action. {self.instructions}")
            return dict(self._words[said.lower()])
        return self._checked(said)

    def draw(self, rng: np.random.Generator) -> str:
        """The text of a random action."""
        if self._words is not None:
            said = list(self._words)[int(rng.integers(len(self._words)))]
        elif self._field is not None:
            said = str(random_value(self._schema.get("properties", {}).get(self._field, {}), rng))
        else:
            said = json.dumps(random_value(self._schema, rng))
        return f"{OPENING}{said}{CLOSING}"

    def _checked(self, said: str) -> dict[str, Any]:
        try:
            action: dict[str, Any] = read_json(said)
        except Unreadable as error:
            raise NoOpenEnvAction(f"The action is no JSON: {error}. {self.instructions}") from error
        if type(action) is not dict:
            raise NoOpenEnvAction(f"The action is no JSON object. {self.instructions}")
        if self._typed is not None:
            try:
                action = self._typed.model_validate(action).model_dump(mode="json", exclude_unset=True)
            except ValidationError as error:
                faults = [f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors()]
                raise NoOpenEnvAction("The action is not of the right form.\n" + "\n".join(faults)) from error
        return action

    def _example(self) -> str:
        if self._words is not None:
            return f"{OPENING}…{CLOSING}, one of {', '.join(self._words)}"
        return f"{OPENING}{'…' if self._field else '{…}'}{CLOSING}"


def _model(typed: str) -> type[BaseModel]:
    found = resolve("envs", typed)
    if not (isinstance(found, type) and issubclass(found, BaseModel)):
        raise ConfigError(f"openenv: action_class={typed!r} is no pydantic model")
    return found
