"""The client's side of `vlrl env serve`: an episode is one session of one instance of one server, to its end.

A call whose answer was lost is sent again, as the server then answers again and does not act again. Where the
episode is, is decided when it begins; a server that was restarted since then knows nothing of it and says so.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal

from vlrl.coordinates import Canvas
from vlrl.environment.host.failure import EnvFailure
from vlrl.environment.serve.wire import loads
from vlrl.envs.gui.remote.http import Caller, Deadlines, HttpAnswer
from vlrl.errors import ConfigError

TOKEN_VARIABLE = "VLRL_ENV_TOKEN"
ATTEMPTS = 3
"""Of a call that the server knows again."""
_INSTANCE = "Vlrl-Instance"


class Servers:
    """One or several servers of the same environment; episodes are spread over them.

    Attributes:
        served: what they say of the environment: env, options, system_prompt, tools, system_prompts, sees.
    """

    def __init__(
        self,
        urls: Sequence[str],
        token_variable: str,
        deadlines: Deadlines,
        images: Literal["raw", "png"],
    ) -> None:
        if not urls:
            raise ConfigError("remote: give url, or urls with at least one")
        token = os.environ.get(token_variable, "")
        self._token_variable, self.deadlines, self.images = token_variable, deadlines, images
        self._callers = [Caller(url, connect_s=deadlines.connect_s, token=token) for url in urls]
        self.served: Mapping[str, Any] = {}

    def learn(self, env: str | None, options: Mapping[str, Any] | None) -> None:
        """Ask what is served.

        Raises:
            ConfigError: if it is not the environment, or not with the options, that are wanted.
            EnvFailure: if no server answers.
        """
        answers = [self._described(caller) for caller in self._callers]
        found = [answer for answer in answers if isinstance(answer, Mapping)]
        if not found:
            raise EnvFailure("died", "; ".join(str(answer) for answer in answers))
        wanted = {"env": env, "options": options}
        for other in found:
            for key, value in wanted.items():
                if value is not None and other[key] != value:
                    raise ConfigError(f"remote: {key}={value!r} is wanted, but {other[key]!r} is served")
            if [other[key] for key in wanted] != [found[0][key] for key in wanted]:
                raise ConfigError("remote: the urls serve different environments or options")
        self.served = found[0]

    def begin(self, task: Mapping[str, Any], seed: int) -> tuple[RemoteSession, Any]:
        """Begin an episode on the server with the most room that takes it.

        Raises:
            ConfigError: of the task.
            EnvFailure: if none takes it.
        """
        problems = []
        for caller in self._by_load(seed):
            session = RemoteSession(self, caller)
            try:
                return session, session.begin(task, seed)
            except EnvFailure as failure:
                session.end()
                problems.append(str(failure))
                kind = failure.kind
        raise EnvFailure(kind, "; ".join(problems))

    def close(self) -> None:
        """Give the connections up."""
        for caller in self._callers:
            caller.close()

    def refused(self, answer: HttpAnswer) -> EnvFailure | ConfigError:
        """What a server says it cannot do."""
        try:
            said = answer.json()
            kind, reason, trace = said["kind"], f"{answer.where}: {said['reason']}", str(said["trace"])
        except (EnvFailure, KeyError, TypeError):
            kind, reason, trace = "", f"{answer.where}: status {answer.status}", ""
        match kind:
            case "token":
                return ConfigError(f"{reason}; put the server's token into {self._token_variable}")
            case "config":
                return ConfigError(reason)
            case "hung" | "died" | "raised":
                return EnvFailure(kind, reason, trace)
            case "instance" | "unknown" | "ended":
                return EnvFailure("died", reason)
            case _:
                return EnvFailure("raised", reason)

    def _described(self, caller: Caller) -> Mapping[str, Any] | EnvFailure:
        try:
            answer = caller.call("GET", "/env", self.deadlines.health_s, attempts=ATTEMPTS)
        except EnvFailure as failure:
            return failure
        if answer.status != 200:
            refusal = self.refused(answer)
            if isinstance(refusal, ConfigError):
                raise refusal
            return refusal
        described: Mapping[str, Any] = answer.json()
        return described

    def _by_load(self, seed: int) -> list[Caller]:
        """The emptiest first; equally empty ones in an order that hangs on the seed, the silent ones last."""
        if len(self._callers) == 1:
            return self._callers
        start = seed % len(self._callers)
        turned = self._callers[start:] + self._callers[:start]
        return sorted(turned, key=self._load)

    def _load(self, caller: Caller) -> float:
        try:
            said = caller.call("GET", "/health", self.deadlines.health_s).good().json()
            return float(said["num_sessions"] / said["max_sessions"])
        except (EnvFailure, KeyError, TypeError):
            return float("inf")


class RemoteSession:
    """One episode on one server."""

    def __init__(self, servers: Servers, caller: Caller) -> None:
        self._servers, self._caller = servers, caller
        self._path = f"/sessions/{secrets.token_hex(16)}"
        self._instance = ""
        self._number = 0

    def begin(self, task: Mapping[str, Any], seed: int) -> Any:
        """The first observation. Raises as `Servers.begin` does."""
        return self._ask(
            "PUT", self._path, {"task": dict(task), "seed": seed}, self._servers.deadlines.reset_s
        )

    def step(self, action: Any, canvases: Sequence[Canvas]) -> Any:
        """The result of an action.

        Raises:
            EnvFailure: of the environment, or if there is no whole answer in time.
        """
        self._number += 1
        shown = [
            [*map(list, (canvas.original_size, canvas.size)), canvas.coordinate_frame] for canvas in canvases
        ]
        asked = {"number": self._number, "action": action, "canvases": shown}
        return self._ask("POST", f"{self._path}/step", asked, self._servers.deadlines.step_s)

    def end(self) -> None:
        """Free the server's environment, if it can be reached; else the lease does."""
        headers = {_INSTANCE: self._instance} if self._instance else {}
        with suppress(EnvFailure):  # of an episode that is over, whatever it was worth
            self._caller.call("DELETE", self._path, self._servers.deadlines.close_s, headers=headers)

    def _ask(self, method: str, path: str, asked: Mapping[str, Any], limit_s: float) -> Any:
        headers = {_INSTANCE: self._instance} if self._instance else {}
        body = {**asked, "images": self._servers.images}
        answer = self._caller.call(method, path, limit_s, attempts=ATTEMPTS, json=body, headers=headers)
        if answer.status != 200:
            raise self._servers.refused(answer)
        instance = answer.headers.get(_INSTANCE, "")
        if not instance or (self._instance and instance != self._instance):
            raise EnvFailure("died", f"{answer.where}: instance {instance!r} answers, not {self._instance!r}")
        self._instance = instance
        return loads(answer.body, answer.where)
