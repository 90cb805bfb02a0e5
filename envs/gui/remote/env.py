"""The environment `remote`: any environment that `vlrl env serve` serves, as if it were here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from vlrl.coordinates import Canvas
from vlrl.envs.gui.remote.http import Deadlines
from vlrl.envs.gui.remote.session import TOKEN_VARIABLE, RemoteSession, Servers
from vlrl.errors import ConfigError
from vlrl.protocols import Env, MultiAgentEnv, Observation, StepResult


def open_remote(
    url: str | None = None,
    urls: Sequence[str] = (),
    env: str | None = None,
    options: Mapping[str, Any] | None = None,
    token_variable: str = TOKEN_VARIABLE,
    images: Literal["raw", "png"] = "raw",
    deadlines: Mapping[str, float] | None = None,
) -> Env | MultiAgentEnv:
    """An environment that `vlrl env serve` serves; a MultiAgentEnv if that is one.

    Args:
        url: of the server. Only the config names it, never a task or a model.
        urls: of several that serve the same; every episode goes to the one with the most room, and stays.
        env: the environment that must be served there, if anything else is an error.
        options: its options, likewise.
        token_variable: name of the environment variable that has the server's token.
        images: how screenshots travel: as they are, or compressed without loss for slow networks.
        deadlines: seconds by phase; see `vlrl.envs.gui.remote.http.Deadlines`.

    Raises:
        ConfigError: for a wrong option, a wrong token, or a server that serves something else.
        EnvFailure: if no server answers.
    """
    if images not in ("raw", "png"):
        raise ConfigError(f"remote: images={images!r}; raw or png")
    if isinstance(urls, str) or (url is None) == (not urls):
        raise ConfigError("remote: give url, or urls as a list, and not both")
    servers = Servers([url] if url else urls, token_variable, Deadlines.of(deadlines), images)
    try:
        servers.learn(env, options)
    except BaseException:
        servers.close()
        raise
    if servers.served["system_prompts"]:
        return RemoteAgents(servers)
    return RemoteEnv(servers)


class _Remote:
    def __init__(self, servers: Servers) -> None:
        self._servers = servers
        self._session: RemoteSession | None = None
        self._canvases: Sequence[Canvas] = ()

    def _begin(self, task: Mapping[str, Any], seed: int) -> Any:
        self.end_episode()
        self._session, shown = self._servers.begin(task, seed)
        return shown

    def _step(self, action: Any) -> Any:
        if self._session is None:
            raise RuntimeError("no episode is under way; call reset first")
        canvases, self._canvases = self._canvases, ()
        return self._session.step(action, canvases)

    def close(self) -> None:
        """End the episode, which frees the server's environment, and the connection; safe to call twice."""
        self.end_episode()
        self._servers.close()

    def end_episode(self) -> None:
        """Free the server's environment for others."""
        self._canvases = ()
        if self._session is not None:
            session, self._session = self._session, None
            session.end()


class RemoteEnv(_Remote):
    """One agent's environment."""

    def __init__(self, servers: Servers) -> None:
        super().__init__(servers)
        self.system_prompt: str = servers.served["system_prompt"]
        self.tools: Sequence[Mapping[str, Any]] = servers.served["tools"]

    def reset(self, task: Mapping[str, Any], seed: int) -> Observation:
        """Begin an episode; raises EnvFailure if no server takes it."""
        shown: Observation = self._begin(task, seed)
        return shown

    def seen(self, canvases: Sequence[Canvas]) -> None:
        """Take how the last observation's images were shown; it is sent with the next step."""
        self._canvases = tuple(canvases)

    def step(self, action: str) -> StepResult:
        """Send the action; raises EnvFailure if it fails there or on the way."""
        result: StepResult = self._step(action)
        return result


class RemoteAgents(_Remote):
    """Several agents' environment, by the contract of `MultiAgentEnv`."""

    def __init__(self, servers: Servers) -> None:
        super().__init__(servers)
        self.system_prompts: Mapping[str, str] = servers.served["system_prompts"]
        self.agents: Sequence[str] = tuple(self.system_prompts)

    def reset(self, task: Mapping[str, Any], seed: int) -> Mapping[str, Observation]:
        """Begin an episode; raises EnvFailure if no server takes it."""
        shown: Mapping[str, Observation] = self._begin(task, seed)
        return shown

    def step(self, actions: Mapping[str, str]) -> Mapping[str, StepResult]:
        """Send the actions; raises EnvFailure if they fail there or on the way."""
        results: Mapping[str, StepResult] = self._step(dict(actions))
        return results
