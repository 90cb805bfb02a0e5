"""OSWorld's set-up steps, of a task's config and of its evaluator's postconfig.

A step is {"type", "parameters"}, as in desktop_env/controllers/setup.py. Most are calls of the machine's
server, made here; those that need more, such as Chrome's debugging port, are done by OSWorld's package where
an interpreter that has it is given.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from vlrl.environment.host.failure import EnvFailure
from vlrl.envs.gui.remote.evaluators.package import STEPS, MachineAddress, OSWorldPackage
from vlrl.errors import ConfigError

_SETUP = {
    "launch": "/setup/launch",
    "execute": "/setup/execute",
    "command": "/setup/execute",
    "execute_with_verification": "/setup/execute_with_verification",
    "open": "/setup/open_file",
    "activate_window": "/setup/activate_window",
    "close_window": "/setup/close_window",
    "change_wallpaper": "/setup/change_wallpaper",
}
_WINDOWS = ("activate_window", "close_window")
_OWN = (*_SETUP, "sleep", "download", "upload_file")
_MAX_RUNS, _PAUSE_S = 200, 0.3
"""A command with `until` is run again after so long, at most so often."""


class Post(Protocol):
    """Calls a machine's server."""

    def __call__(
        self,
        path: str,
        body: Mapping[str, Any],
        *,
        files: Mapping[str, bytes] | None = None,
        lenient: bool = False,
    ) -> Any:
        """The answer's JSON or text.

        Args:
            path: of the call.
            body: of JSON, or the form's fields beside files.
            files: contents by field.
            lenient: the server's answer that it failed will do; a proxy's that there is no server will not.

        Raises:
            EnvFailure: if there is no answer, or it says that the call failed.
        """


@dataclass(frozen=True, slots=True)
class TaskMachine:
    """A machine that tasks are set up on.

    Attributes:
        post: calls its server.
        address: it, as OSWorld's package sees it.
        package: that, if there is an interpreter that has it.
        until: when all of it must be done, of `time.monotonic`.
    """

    post: Post
    address: MachineAddress
    package: OSWorldPackage | None
    until: float

    @property
    def limit_s(self) -> float:
        """Seconds that are left."""
        return max(self.until - time.monotonic(), 0.1)


def check_steps(steps: Sequence[Mapping[str, Any]], package: OSWorldPackage | None) -> None:
    """Refuse, before anything is played, what cannot be set up.

    Raises:
        ConfigError: naming the step.
    """
    for step in steps:
        kind = step.get("type")
        if kind in STEPS and package is None:
            raise ConfigError(
                f"gui/osworld: set-up step {kind!r} needs OSWorld's package; give the option evaluators"
            )
        if kind in STEPS and package is not None:
            package.check_step(str(kind))
        elif kind not in _OWN:
            known = ", ".join(sorted([*_OWN, *STEPS]))
            raise ConfigError(f"gui/osworld: no set-up step {kind!r}; known: {known}")


def set_up(steps: Sequence[Mapping[str, Any]], machine: TaskMachine, *, after_agent: bool = False) -> None:
    """Carry out steps that were checked.

    Args:
        steps: in order.
        machine: where.
        after_agent: what the agent did may be why a command fails: that is a state, not a failure. A window
            that is not there never is one.

    Raises:
        EnvFailure: for one that fails.
    """
    for step in steps:
        kind, parameters = str(step["type"]), dict(step.get("parameters", {}))
        lenient = kind in _WINDOWS or after_agent
        match kind:
            case "sleep":
                time.sleep(float(parameters["seconds"]))
            case "download":
                for file in parameters["files"]:
                    machine.post("/setup/download_file", {"url": file["url"], "path": file["path"]})
            case "upload_file":
                for file in parameters["files"]:
                    _upload(Path(file["local_path"]), str(file["path"]), machine.post)
            case "execute" | "command":
                _execute(parameters, machine, lenient)
            case "launch":
                command = parameters["command"]
                if isinstance(command, str) and not parameters.get("shell"):
                    command = command.split()
                machine.post(_SETUP[kind], {**parameters, "command": command}, lenient=lenient)
            case _ if kind in _SETUP:
                machine.post(_SETUP[kind], parameters, lenient=lenient and kind != "open")
            case _:
                assert machine.package is not None
                machine.package.set_up(kind, parameters, machine.address, machine.limit_s)


def _upload(local: Path, path: str, post: Post) -> None:
    try:
        content = local.read_bytes()
    except OSError as error:
        raise ConfigError(f"gui/osworld: upload_file: {local}: {error.strerror}") from error
    post("/setup/upload", {"file_path": path}, files={"file_data": content})


def _execute(parameters: Mapping[str, Any], machine: TaskMachine, lenient: bool) -> None:
    """Run a command, again until it gives what `until` says; keep what it prints where files are kept."""
    until = parameters.get("until") or {}
    body = {
        "command": _filled(parameters["command"], machine.address),
        "shell": parameters.get("shell", False),
    }
    for _ in range(_MAX_RUNS):
        said = machine.post("/setup/execute", body, lenient=lenient)
        if not isinstance(said, Mapping) or "returncode" not in said:
            return  # it could not be run
        for key, stream in (("stdout", "output"), ("stderr", "error")):
            if name := parameters.get(key):
                Path(machine.address.cache_dir, name).write_text(str(said[stream]), encoding="utf-8")
        if not until or _is_reached(until, said):
            return
        time.sleep(_PAUSE_S)
    raise EnvFailure("hung", f"gui/osworld: {body['command']} ran {_MAX_RUNS} times and never gave {until}")


def _is_reached(until: Mapping[str, Any], said: Mapping[str, Any]) -> bool:
    return (
        ("returncode" in until and said["returncode"] == until["returncode"])
        or ("stdout" in until and until["stdout"] in said["output"])
        or ("stderr" in until and until["stderr"] in said["error"])
    )


def _filled(command: str | Sequence[str], address: MachineAddress) -> str | list[str]:
    """A command with the words that OSWorld puts in: password and screen size."""
    if not isinstance(command, str):
        return [str(_filled(part, address)) for part in command]
    width, height = address.size
    words = {
        "CLIENT_PASSWORD": address.password,
        "SCREEN_WIDTH_HALF": width // 2,
        "SCREEN_HEIGHT_HALF": height // 2,
        "SCREEN_WIDTH": width,
        "SCREEN_HEIGHT": height,
    }
    for name, value in words.items():
        command = command.replace("{" + name + "}", str(value))
    return command
