"""OSWorld's machines: the server inside of each (desktop_env/server/main.py) gets commands.

    GET /screenshot       a PNG with the pointer
    POST /execute         {"command": argv, "shell": false} → {"status", "output", "error", "returncode"}
    POST /setup/…         a task's set-up steps

It has no reset, no sessions and no evaluation. Putting a machine back is its provider's work, so the config
gives the command that does it (`revert`); which machine answers is known by a mark, see `osworld_program`.
"""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import numpy as np

from vlrl.environment.host.failure import EnvFailure
from vlrl.environment.images import pixels_of
from vlrl.envs.gui.actions import Action, Finish
from vlrl.envs.gui.env import GuiEnv
from vlrl.envs.gui.remote.backend import READ_ATTEMPTS, SERVER_ERRORS, RemoteBackend, text_of
from vlrl.envs.gui.remote.evaluators.package import MachineAddress, OSWorldPackage, downloads_folder
from vlrl.envs.gui.remote.osworld_program import calls_of, command
from vlrl.envs.gui.remote.osworld_setup import TaskMachine, check_steps, set_up
from vlrl.envs.gui.remote.osworld_task import check_evaluator, score
from vlrl.envs.gui.remote.providers.provider import CommandProvider, Provider
from vlrl.envs.gui.scratch import scratch_folder
from vlrl.envs.gui.screen import Screen
from vlrl.errors import ConfigError
from vlrl.registry.lookup import resolve

_QUIET_S = 0.1
"""Two screenshots this far apart are the same: the screen has settled."""
CHROMIUM_PORT, VLC_PORT = 9222, 8080
"""Of a machine whose address does not say them."""


class OSWorldEnv(GuiEnv):
    """Tasks of OSWorld on machines that its server runs in."""

    def __init__(
        self,
        urls: Sequence[str] = (),
        revert: Sequence[str] | None = None,
        size: Sequence[int] = (1920, 1080),
        task_steps: int = 15,
        settle_s: float = 2.0,
        verify: Literal["end", "step"] = "end",
        deadlines: Mapping[str, float] | None = None,
        evaluators: str | None = None,
        downloads: str | None = None,
        password: str = "password",
        provider: Mapping[str, Any] | None = None,
        **rules: Any,
    ) -> None:
        """Take the options.

        Args:
            urls: a machine's server each, such as http://127.0.0.1:5000; episodes at once need one each. With
                other ports than 9222 for Chrome and 8080 for VLC it is, as OSWorld writes it,
                HOST:SERVER:CHROMIUM:VNC:VLC.
            revert: the command on this host that puts a machine back, as [docker, restart, osworld-{index}],
                {index} being the machine's place in urls; [] says that the tasks do not need it.
            size: [width, height] of the screens.
            task_steps: actions that a task allows for.
            settle_s: longest wait for the screen to stop changing; 0 takes it as it is.
            verify: "end", when the agent says that it is done, or "step", after every action.
            deadlines: seconds by phase; see `vlrl.envs.gui.remote.http.Deadlines`.
            evaluators: an interpreter that has OSWorld's package desktop_env, which then verifies the tasks;
                null leaves the few evaluators that vlrl has itself.
            downloads: folder in which files that evaluators download are kept; null is vlrl/osworld in the
                user's cache.
            password: of the user in the machines, where a task's commands need it.
            provider: in the place of urls and revert, what starts machines: {name, options}; name is docker,
                qemu or ./file.py:Class, a `vlrl.envs.gui.remote.providers.provider.Provider`.
            **rules: see `vlrl.envs.gui.rules.GuiRules`.
        """
        backend = OSWorldBackend(_provider_of(urls, revert, provider), size, task_steps, verify, deadlines)
        backend.settle_s = settle_s
        backend.package = OSWorldPackage(evaluators) if evaluators else None
        backend.downloads, backend.password = Path(downloads or downloads_folder()).absolute(), password
        super().__init__(backend, **rules)


class OSWorldBackend(RemoteBackend):
    """One machine of OSWorld at a time."""

    name = "gui/osworld"
    settle_s = 2.0
    package: OSWorldPackage | None = None
    downloads = Path()
    password = ""
    _files: Path | None = None

    def __init__(self, provider: Provider, *options: Any) -> None:
        """Take what has the machines, and what every `RemoteBackend` takes beside urls."""
        self._provider, self._ports = provider, dict(map(_ports_of, provider.addresses))
        super().__init__(list(self._ports), *options)

    def _begin(self, task: Mapping[str, Any], seed: int) -> Screen:
        self.goal = text_of(task, "instruction", self.name)
        self._evaluator = task.get("evaluator")
        check_evaluator(self._evaluator, self.package)
        check_steps(task.get("config", ()), self.package)
        until = time.monotonic() + self.deadlines.reset_s
        self._await(until, self._provider.revert(self._machines.index, until - time.monotonic()))
        self._run([], begin=True)
        self._files = scratch_folder("osworld")
        set_up(task.get("config", ()), self._machine(until))
        return self._shown()

    def _end(self) -> None:
        if self._files is not None:
            shutil.rmtree(self._files, ignore_errors=True)
            self._files = None
        self._provider.stop(self._machines.index, self.deadlines.close_s)

    def _act(self, action: Action) -> Screen:
        self._run(calls_of(action))
        return self._shown()

    def _score(self) -> float:
        self._run([])  # still the same machine
        gave_up = isinstance(self._done, Finish) and not self._done.success
        assert isinstance(self._evaluator, Mapping)
        return score(self._evaluator, gave_up, self._machine(time.monotonic() + self.deadlines.verify_s))

    def _machine(self, until: float) -> TaskMachine:
        """The machine, for calls that end before a point in time."""

        def post(
            path: str,
            body: Mapping[str, Any],
            *,
            files: Mapping[str, bytes] | None = None,
            lenient: bool = False,
        ) -> Any:
            return self._post(path, body, until - time.monotonic(), files=files, lenient=lenient)

        parts, (chromium, vlc) = urlsplit(self.caller.url), self._ports[self.caller.url]
        address = MachineAddress(
            ip=str(parts.hostname),
            server_port=parts.port or 80,
            chromium_port=chromium,
            vlc_port=vlc,
            cache_dir=str(self._files),
            downloads=str(self.downloads),
            password=self.password,
            size=self.size,
        )
        return TaskMachine(post, address, self.package, until)

    def _await(self, until: float, starts: bool) -> None:
        """Wait until the machine shows a screen, if it starts; else it must show one now."""
        while True:
            try:
                limit_s = min(self.deadlines.health_s, max(until - time.monotonic(), 0.1))
                self.caller.call("GET", "/screenshot", limit_s).good()
                return
            except EnvFailure:
                if time.monotonic() + 0.5 >= until or not starts:
                    raise
                time.sleep(0.5)

    def _run(self, calls: list[Any], *, begin: bool = False) -> None:
        """Have the program do it, once; a lost answer is a lost episode."""
        argv = command(calls, self._episode, begin=begin)
        answer = self._post("/execute", {"command": argv, "shell": False}, self.deadlines.step_s)
        where = f"{self.name}: {self.caller.url}"
        if not isinstance(answer, Mapping) or answer.get("returncode") != 0:
            raise EnvFailure("raised", f"{where}: the action's program failed: {answer!r:.500}")
        try:
            said = json.loads(str(answer["output"]).splitlines()[-1])
            if said.get("lost"):
                raise EnvFailure("died", f"{where}: not the machine that the episode began on, or put back")
            self._pointer = int(said["pointer"][0]), int(said["pointer"][1])
        except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
            raise EnvFailure("raised", f"{where}: the program's answer is {answer!r:.300}") from error

    def _post(
        self,
        path: str,
        body: Mapping[str, Any],
        limit_s: float,
        *,
        files: Mapping[str, bytes] | None = None,
        lenient: bool = False,
    ) -> Any:
        sent: dict[str, Any] = (
            {"json": dict(body)} if files is None else {"data": dict(body), "files": dict(files)}
        )
        answer = self.caller.call("POST", path, max(limit_s, 0.1), **sent)
        if not lenient or answer.status > 500:
            answer.good()
        is_json = "json" in answer.headers.get("content-type", "")
        return answer.json() if is_json else answer.body.decode(errors="replace")

    def _shown(self) -> Screen:
        """The screen when two screenshots are the same, or when time is up."""
        until = time.monotonic() + self.settle_s
        last = self._screenshot()
        while time.monotonic() + _QUIET_S <= until:
            time.sleep(_QUIET_S)
            before, last = last, self._screenshot()
            if np.array_equal(before, last):
                return self._screen(last)
        return self._screen(last, settled=False)

    def _screenshot(self) -> Any:
        answer = self.caller.call(
            "GET", "/screenshot", self.deadlines.step_s, attempts=READ_ATTEMPTS, retried=SERVER_ERRORS
        )
        return pixels_of(answer.good().body, answer.where)


def _provider_of(
    urls: Sequence[str], revert: Sequence[str] | None, provider: Mapping[str, Any] | None
) -> Provider:
    """What has the machines. Raises ConfigError for options that do not say it."""
    if provider is None:
        if isinstance(urls, str) or not urls:
            raise ConfigError("gui/osworld: give urls as a list of at least one address, or a provider")
        if revert is None or isinstance(revert, str):
            raise ConfigError(
                "gui/osworld: revert: give the command, as a list, that resets a machine before an episode; "
                "[] if the tasks do not need it"
            )
        return CommandProvider(urls, revert)
    if urls or revert is not None:
        raise ConfigError("gui/osworld: give either a provider, or urls and revert")
    if not {"name"} <= provider.keys() <= {"name", "options"}:
        raise ConfigError(f"gui/osworld: provider={dict(provider)!r}; give name, and options if it has any")
    made: Provider = resolve("providers", str(provider["name"]))(**provider.get("options", {}))
    return made


def _ports_of(url: str) -> tuple[str, tuple[int, int]]:
    """A machine's (URL, (port of Chrome, port of VLC))."""
    if found := re.fullmatch(r"([^:/]+):(\d+):(\d+):(\d+):(\d+)", url):
        return f"http://{found[1]}:{found[2]}", (int(found[3]), int(found[5]))
    return url.rstrip("/"), (CHROMIUM_PORT, VLC_PORT)
