"""How OSWorld's tasks are verified: by a few evaluators here, by all of them in OSWorld's package.

A task is {"id", "instruction", "config", "evaluator"} as in evaluation_examples/examples. OSWorld's server
has no call that verifies: its evaluators are Python of its own (desktop_env/evaluators). Those that compare
what a command prints are here; the others need an interpreter that has the package.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from vlrl.environment.host.failure import EnvFailure
from vlrl.envs.gui.remote.evaluators.package import OSWorldPackage
from vlrl.envs.gui.remote.osworld_setup import TaskMachine, check_steps, set_up
from vlrl.errors import ConfigError


def check_evaluator(evaluator: Any, package: OSWorldPackage | None = None) -> None:
    """Refuse, before anything is played, what cannot be verified.

    Args:
        evaluator: of a task.
        package: OSWorld's own evaluators; None if there is no interpreter that has them.

    Raises:
        ConfigError: naming it.
    """
    if not isinstance(evaluator, Mapping) or "func" not in evaluator:
        raise ConfigError("gui/osworld: the task needs an 'evaluator' with a 'func'")
    check_steps(evaluator.get("postconfig", ()), package)
    if evaluator["func"] == "infeasible":
        return
    if package is not None:
        package.check(evaluator)
        return
    for func, result, expected in _parts(evaluator):
        if func not in _METRICS or result.get("type") != "vm_command_line" or expected.get("type") != "rule":
            raise ConfigError(
                f"gui/osworld: evaluator {func!r} of {result.get('type')!r} is not known; known: "
                f"infeasible, and {', '.join(_METRICS)} of vm_command_line by rule. For OSWorld's own "
                "give the option evaluators (docs/gui_remote.md), or use gui/osgym"
            )


def score(evaluator: Mapping[str, Any], gave_up: bool, machine: TaskMachine) -> float:
    """What the evaluator gives, 0 to 1.

    Args:
        evaluator: checked.
        gave_up: the agent said last that the task cannot be done.
        machine: as the agent left it.

    Raises:
        EnvFailure: if it cannot be verified.
    """
    if evaluator["func"] == "infeasible" or gave_up:
        return float(evaluator["func"] == "infeasible" and gave_up)
    set_up(evaluator.get("postconfig", ()), machine, after_agent=True)
    if machine.package is not None:
        return machine.package.score(evaluator, machine.address, machine.limit_s)
    found = []
    for func, result, expected in _parts(evaluator):
        command = {"command": result["command"], "shell": bool(result.get("shell", False))}
        answer = machine.post("/execute", command)
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
