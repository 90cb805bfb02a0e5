"""OSWorld's task files: setting up, and verifying, as far as the machine's own server can do it.

A task is {"id", "instruction", "config", "evaluator"} as in evaluation_examples/examples. Setting up is a
list of {"type", "parameters"}; those below are calls of its server (desktop_env/controllers/setup.py).
OSWorld has no call that verifies: its 134 evaluators are Python of its own (desktop_env/evaluators). Those
that compare what a command prints are here; for the others use a server that evaluates, such as OSGym's.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from vlrl.environment.host.failure import EnvFailure
from vlrl.errors import ConfigError

_SETUP = {
    "launch": "/setup/launch",
    "execute": "/setup/execute",
    "command": "/setup/execute",
    "open": "/setup/open_file",
    "activate_window": "/setup/activate_window",
    "close_window": "/setup/close_window",
    "change_wallpaper": "/setup/change_wallpaper",
}
Post = Callable[[str, Mapping[str, Any]], Any]
"""(path, body) → the answer's JSON or text."""


def set_up(steps: Sequence[Mapping[str, Any]], post: Post) -> None:
    """Carry a task's config out.

    Raises:
        ConfigError: for a step that is not known.
        EnvFailure: for one that fails.
    """
    for step in steps:
        kind, parameters = step.get("type"), dict(step.get("parameters", {}))
        match kind:
            case "sleep":
                time.sleep(float(parameters["seconds"]))
            case "download":
                for file in parameters["files"]:
                    post("/setup/download_file", {"url": file["url"], "path": file["path"]})
            case str() if kind in _SETUP:
                post(_SETUP[kind], parameters)
            case _:
                known = ", ".join(sorted([*_SETUP, "sleep", "download"]))
                raise ConfigError(f"gui/osworld: no set-up step {kind!r}; known: {known}")


def check_evaluator(evaluator: Any) -> None:
    """Refuse, before anything is played, what cannot be verified.

    Raises:
        ConfigError: naming it.
    """
    if not isinstance(evaluator, Mapping) or "func" not in evaluator:
        raise ConfigError("gui/osworld: the task needs an 'evaluator' with a 'func'")
    if evaluator["func"] == "infeasible":
        return
    for func, result, expected in _parts(evaluator):
        if func not in _METRICS or result.get("type") != "vm_command_line" or expected.get("type") != "rule":
            raise ConfigError(
                f"gui/osworld: evaluator {func!r} of {result.get('type')!r} is not known; known: "
                f"infeasible, and {', '.join(_METRICS)} of vm_command_line by rule. Use gui/osgym for others"
            )


def score(evaluator: Mapping[str, Any], gave_up: bool, post: Post) -> float:
    """What the evaluator gives, 0 to 1.

    Args:
        evaluator: checked.
        gave_up: the agent said last that the task cannot be done.
        post: to the machine.
    """
    if evaluator["func"] == "infeasible" or gave_up:
        return float(evaluator["func"] == "infeasible" and gave_up)
    for step in evaluator.get("postconfig", ()):
        set_up([step], post)
    found = []
    for func, result, expected in _parts(evaluator):
        answer = post("/execute", {"command": result["command"], "shell": bool(result.get("shell", False))})
        if not isinstance(answer, Mapping) or not isinstance(answer.get("output"), str):
            raise EnvFailure("raised", f"gui/osworld: {result['command']!r} gave no output: {answer!r:.200}")
        found.append(_METRICS[func](answer["output"], expected["rules"]))
    return float(any(found) if evaluator.get("conj", "and") == "or" else all(found))


def _parts(evaluator: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any], Mapping[str, Any]]]:
    several = [evaluator["func"], evaluator.get("result", {}), evaluator.get("expected", {})]
    if not isinstance(evaluator["func"], list):
        several = [[each] for each in several]
    return list(zip(*several, strict=True))


def _include_exclude(output: str, rules: Mapping[str, Any]) -> bool:
    has_all = all(part in output for part in rules.get("include", ()))
    return has_all and not any(part in output for part in rules.get("exclude", ()))


def _exact(output: str, rules: Mapping[str, Any]) -> bool:
    return output == str(rules["expected"])


_METRICS: Mapping[str, Callable[[str, Mapping[str, Any]], bool]] = {
    "check_include_exclude": _include_exclude,
    "exact_match": _exact,
}
