"""An environment that an OpenEnv server keeps, played over the network."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from vlrl.envs.adapters.contents import image_of
from vlrl.envs.adapters.openenv.action import ActionForm, NoOpenEnvAction
from vlrl.envs.adapters.openenv.session import OpenEnvRefused, OpenEnvSession, action_schema
from vlrl.protocols import Observation, StepResult
from vlrl.seeds import derive_seed


class OpenEnvEnv:
    """A session of its own for each instance. What fails on the way is raised, never scored (law 7).

    Images are the observation's fields (or lists of such) that hold a data URL, base64 of a PNG, JPEG, WebP
    or GIF, or [h, w, 3] nested lists; the other fields are the text.
    """

    def __init__(
        self,
        url: str,
        actions: Mapping[str, Mapping[str, Any]] | None = None,
        field: str | None = None,
        action_class: str | None = None,
        system_prompt: str | None = None,
        text: str | None = None,
        connect_timeout_s: float = 10.0,
        timeout_s: float = 60.0,
        success_above: float = 0.0,
    ) -> None:
        """Take the options; the server is asked for its schema once, unless words or a field say it all.

        Args:
            url: of the server, http(s):// or ws(s)://. Only this names it, never a task or a model.
            actions: word → action, such as {left: {action_id: 0}}; the model writes <action>left</action>.
            field: a text field; what the model writes between the tags becomes its value.
            action_class: ./file.py:Class, the environment's own action type; the model writes JSON, and what
                is wrong with it is found without asking the server. By default, JSON of the server's schema.
            system_prompt: in place of the instructions made from the above.
            text: the form of an observation, such as "{message} ({score} points)"; by default a field's text
                if it is the only one, else all of them as JSON.
            connect_timeout_s: for a connection.
            timeout_s: for an answer.
            success_above: an episode whose rewards sum to more is a success.

        Raises:
            ConfigError: for a wrong option.
            ConnectionError: if the server must be asked and is away.
        """
        self._session = OpenEnvSession(url, connect_timeout_s, timeout_s)
        asked = not (actions or field or action_class)
        schema = action_schema(self._session.url, connect_timeout_s) if asked else None
        self._form = ActionForm(actions, field, action_class, schema)
        self.system_prompt = self._form.instructions if system_prompt is None else system_prompt
        self._text, self._success_above = text, success_above
        self._total = 0.0

    def reset(self, task: Mapping[str, Any], seed: int) -> Observation:
        """Start an episode.

        Args:
            task: the reset's parameters by name; the server leaves out those that its reset does not name.
            seed: sent as `seed`, derived and below 2³¹, unless the task has one.
        """
        self._total = 0.0
        answer = self._session.ask("reset", {"seed": derive_seed("openenv", seed) % 2**31, **task})
        if answer.get("done"):
            raise ValueError(f"{self._session.url}: the episode of task {dict(task)} is over at its reset")
        return self._observation(answer)

    def step(self, action: str) -> StepResult:
        """Send the action; text that is none, or that the server does not accept, is answered."""
        try:
            answer = self._session.ask("step", self._form.read(action))
        except (NoOpenEnvAction, OpenEnvRefused) as error:
            said = str(error) if isinstance(error, NoOpenEnvAction) else f"{error}\n{self._form.instructions}"
            return StepResult(Observation(said), 0.0, False, False, {"invalid": True})
        reward = float(answer.get("reward") or 0.0)
        self._total += reward
        done = bool(answer.get("done"))
        info = {"success": self._total > self._success_above} if done else {}
        return StepResult(self._observation(answer), reward, done, False, info)

    def state(self) -> Mapping[str, Any]:
        """What the server reports about its environment's state."""
        return self._session.ask("state")

    def close(self) -> None:
        """End the session."""
        self._session.close()

    def random_action(self, rng: np.random.Generator) -> str:
        """An action that the schema allows, drawn without looking."""
        return self._form.draw(rng)

    def _observation(self, answer: Mapping[str, Any]) -> Observation:
        fields = dict(answer["observation"])
        images: list[Any] = []
        rest: dict[str, Any] = {}
        for name, value in fields.items():
            image = image_of(value)
            several = [image_of(item) for item in value] if isinstance(value, list) else []
            if image is not None:
                images.append(image)
            elif several and all(item is not None for item in several):
                images += several
            else:
                rest[name] = value
        return Observation(text=self._text_of(rest), images=tuple(images))

    def _text_of(self, fields: Mapping[str, Any]) -> str:
        if self._text is not None:
            return self._text.format_map(fields)
        if len(fields) == 1 and isinstance(only := next(iter(fields.values())), str):
            return only
        return json.dumps(fields, ensure_ascii=False) if fields else ""
