"""desktop_env's evaluators and set-up steps, run in the interpreter that has it.

    gui/osworld ──► evaluator, machine ──► program/episodes.py: getters (machine, network) → metric → score

What cannot run there is refused before anything is played, with the package that it lacks. What fails there
is an `EnvFailure`: no result, and not a bad one (law 7).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from vlrl.environment.host.failure import EnvFailure
from vlrl.errors import ConfigError
from vlrl.foreign.pool import ProgramPool, kind_of
from vlrl.foreign.program import Gone

NAME = "gui/osworld"
LINGER_S = 300.0
"""An unused program ends after so long: importing the package takes seconds."""
START_S = 60.0
"""Longest time for what the package can do."""
STEPS = ("chrome_open_tabs", "chrome_close_tabs", "update_browse_history", "googledrive", "login")
"""Set-up steps that need more than the machine's server, so that the package does them."""


@dataclass(frozen=True, slots=True)
class MachineAddress:
    """A machine as the package sees it.

    Attributes:
        ip: host name or number.
        server_port: of its server.
        chromium_port: of Chrome's debugging interface.
        vlc_port: of VLC's web interface.
        cache_dir: the episode's folder for files.
        downloads: folder of files that are kept between episodes.
        password: of the user in the machine.
        size: (width, height) of the screen.
    """

    ip: str
    server_port: int
    chromium_port: int
    vlc_port: int
    cache_dir: str
    downloads: str
    password: str
    size: tuple[int, int]


class OSWorldPackage:
    """desktop_env in one interpreter; its programs are shared by the environments of this process."""

    def __init__(self, python: str) -> None:
        """Take the interpreter."""
        self._python = python

    def check(self, evaluator: Mapping[str, Any]) -> None:
        """Refuse an evaluator that this interpreter cannot run.

        Raises:
            ConfigError: naming it and what it lacks.
        """
        for kind, name in _names(evaluator):
            self._check(kind, name)

    def check_step(self, kind: str) -> None:
        """Refuse a set-up step of STEPS that this interpreter cannot do. Raises ConfigError."""
        self._check("steps", kind)

    def score(self, evaluator: Mapping[str, Any], machine: MachineAddress, limit_s: float) -> float:
        """The task's score as it stands, from 0 to 1.

        Raises:
            EnvFailure: if the machine, the network, a getter or a metric fails, or it takes too long.
        """
        return float(self._ask("score", limit_s, evaluator=dict(evaluator), machine=asdict(machine)))

    def set_up(
        self, kind: str, parameters: Mapping[str, Any], machine: MachineAddress, limit_s: float
    ) -> None:
        """Do a step of a task's set-up. Raises EnvFailure if it fails."""
        self._ask("set_up", limit_s, kind=kind, parameters=dict(parameters), machine=asdict(machine))

    def _check(self, kind: str, name: str) -> None:
        known = described(self._python)[kind]
        what = {"metrics": "evaluator", "getters": "getter", "steps": "set-up step"}[kind]
        if name not in known:
            raise ConfigError(f"{NAME}: no {what} {name!r} in {self._python}'s desktop_env")
        if "code" in known[name]["wants"]:
            raise ConfigError(
                f"{NAME}: {what} {name!r} runs Python that the agent may have written, on this host; "
                "leave the task out"
            )
        if missing := known[name]["missing"]:
            reasons = "; ".join(f"{package} ({why})" for package, why in missing.items())
            raise ConfigError(
                f"{NAME}: {what} {name!r} needs what {self._python} cannot import: {reasons}. "
                f"Install it there: {self._python} -m pip install {' '.join(missing)}"
            )

    def _ask(self, method: str, limit_s: float, **request: Any) -> Any:
        try:
            # A request of the program that ends at the same moment would be a failure of another kind.
            said = _ask(self._python, method, limit_s, limit_s=2 * limit_s, **request)
        except TimeoutError as error:
            raise EnvFailure("hung", str(error)) from error
        except Gone as error:
            raise EnvFailure("died", str(error)) from error
        except RuntimeError as error:
            raise EnvFailure("raised", str(error)) from error
        if "failure" in said:
            raise EnvFailure("raised", f"{NAME}: desktop_env: {said['failure']}")
        return said["value"]


@cache
def described(python: str) -> Mapping[str, Any]:
    """What an interpreter's desktop_env has: {"version"} and by name "metrics", "getters", "steps".

    Each is {"missing": package → why it cannot be imported, "packages", "wants"}: what it needs beside
    files and the machine's server, of chrome, vlc, network, google drive, code.

    Raises:
        ConfigError: if there is no such interpreter, or it has no desktop_env.
    """
    found: Mapping[str, Any] = _ask(python, "describe", START_S, steps=STEPS)
    return found


def downloads_folder() -> Path:
    """Where files that tasks download are kept, if no other folder is chosen."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "vlrl" / "osworld"


def _ask(python: str, method: str, timeout_s: float, **request: Any) -> Any:
    """Ask a program that nobody else asks; one that takes too long is ended, with what it does."""
    kind = kind_of(python, {})
    program = _programs.take(kind)
    try:
        said = program.ask(method, timeout_s, **request)
    except (TimeoutError, RuntimeError):
        program.kill()
        raise
    _programs.give_back(kind, program)
    return said


def _names(evaluator: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The ("metrics" or "getters", name) of an evaluator. Raises ConfigError if it is not one."""
    func, result, expected = evaluator["func"], evaluator.get("result"), evaluator.get("expected")
    if not isinstance(func, list):
        func, result, expected = [func], [result], [expected]
    try:
        for name, brought, wanted in zip(func, result or (), expected or [None] * len(func), strict=True):
            yield "metrics", str(name)
            yield "getters", str(brought["type"])
            if wanted:
                yield "getters", str(wanted["type"])
    except (KeyError, TypeError, ValueError) as error:
        raise ConfigError(
            f"{NAME}: the task's evaluator is not one: {error!r}: {evaluator!r:.300}"
        ) from error


def _remedy(error: str, python: str) -> str:
    if "desktop_env" in error:
        return (
            f"{python} has no desktop_env; install it in an environment of its own, with the packages that "
            "your tasks need: docs/gui_remote.md names them"
        )
    return error or "the program ended before it was ready; what it printed is above"


_programs = ProgramPool(NAME, Path(__file__).parent / "program", "OSWorld's evaluators", LINGER_S, _remedy)
