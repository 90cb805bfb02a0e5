"""Tasks of one's own: a folder with a page and a script a task.

    shop/coffee.html     what the agent sees; may load other files of the folder
    shop/coffee.task.js  an object that says what is to be done and whether it was; never served to a page

The script runs in a world of its own, which shares the document with the page and nothing else: what it
knows, the page and whoever types into it cannot read or change. It is run again whenever it is asked, so that
a task may lead over several pages; what it drew for the episode, its plan, is kept here: docs/gui_web.md.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from vlrl.envs.gui.actions import Action, Answer, Finish
from vlrl.envs.gui.screen import Form, Screen, Verdict
from vlrl.envs.gui.web.backend import WebBackend, drawn_name, quoted
from vlrl.envs.gui.web.chromium.chrome import Sandbox
from vlrl.envs.gui.web.chromium.gate import Gate
from vlrl.envs.gui.web.chromium.pipe import BrowserFailure
from vlrl.envs.gui.web.look import Look
from vlrl.errors import ConfigError
from vlrl.seeds import derive_seed

TASK_SUFFIX = ".task.js"
MAX_STEPS = 15

_NUM_DRAWS = 256

_BEGIN = """(async () => {
  const task = (%s), numbers = %s;
  let used = 0;
  const plan = task.plan ? await task.plan(() => numbers[used++ %% numbers.length]) : null;
  if (task.setup) await task.setup(plan);
  const goal = typeof task.goal === "function" ? await task.goal(plan) : task.goal;
  return { plan, goal, maxSteps: task.maxSteps ?? null, endsAtGoal: task.endsAtGoal ?? true };
})()"""
_ASK = "(async () => (%s).verdict(%s, %s))()"


class WebFolder(WebBackend):
    """One of a folder's tasks an episode."""

    def __init__(
        self,
        folder: str,
        tasks: Sequence[str] | str | None = None,
        size: Sequence[int] = (640, 480),
        scale: float = 1.0,
        form: Form = "desktop",
        step_ms: int = 48,
        settle_ms: int = 640,
        limit_s: float = 30.0,
        sandbox: Sandbox = "require",
    ) -> None:
        """Open a folder.

        Args:
            folder: with NAME.html and NAME.task.js of every task.
            tasks: names or patterns; None for all.
            size: [width, height] of the page in CSS pixels.
            scale: pixels of the image to a CSS pixel; and so the others: see `Look`.
            form: "mobile" has fingers for a mouse.
            step_ms: see `Look`.
            settle_ms: the same.
            limit_s: the same.
            sandbox: "require", or "warn" to go on without one, loudly, where none can be made.

        Raises:
            ConfigError: for an option out of range, or a folder without such tasks.
        """
        place = Path(folder)
        self.tasks = _tasks(place, tasks)
        if len(size) != 2 or not all(isinstance(side, int) and 32 <= side <= 4096 for side in size):
            raise ConfigError(f"env gui/web: option size={size!r}; [width, height], 32 to 4096 each")
        look = Look((size[0], size[1]), float(scale), form, step_ms, settle_ms, limit_s)
        super().__init__(Gate(place, lambda path: path.name.endswith(TASK_SUFFIX)), look, sandbox)
        self._folder = place
        self._name = self._script = self._goal = ""
        self._plan = "null"
        self._said: dict[str, Any] = {"answer": None, "finished": None}
        self._verdict = Verdict(False, 0.0)

    def reset(self, task: Mapping[str, Any], seed: int) -> Screen:
        """See `Backend`; task may have a name, else one is drawn by the seed."""
        rng = np.random.default_rng(derive_seed("web", seed))
        self._name = drawn_name(self.tasks, task, lambda number: int(rng.integers(number)), "gui/web")
        script = (self._folder / f"{self._name}{TASK_SUFFIX}").read_text(encoding="utf-8")
        self._script = script.rstrip().rstrip(";")
        self._said = {"answer": None, "finished": None}
        page = self.open(f"/{self._name}.html", derive_seed("web page", seed))
        begun = self._ask(_BEGIN % (self._script, quoted(rng.random(_NUM_DRAWS).tolist())))
        self._plan = quoted(begun.get("plan"))
        self._goal, self.ends_at_goal = str(begun["goal"]), bool(begun["endsAtGoal"])
        self.max_steps = MAX_STEPS if begun["maxSteps"] is None else int(begun["maxSteps"])
        page.rest()
        self._verdict = self._look_up()
        return self.show()

    @property
    def task_info(self) -> Mapping[str, Any]:
        """Name of the task."""
        return {"task": self._name}

    @property
    def goal(self) -> str:
        """What the script says is to be done."""
        return self._goal

    def perform(self, action: Action) -> Screen:
        """See `Backend`."""
        match action:
            case Answer(text=text):
                self._said = {"answer": text, "finished": "done"}
            case Finish(success=success):
                self._said = {"answer": None, "finished": "done" if success else "failed"}
        screen = super().perform(action)
        self._verdict = self._look_up()
        return screen

    def verdict(self) -> Verdict:
        """See `Backend`."""
        return self._verdict

    def _look_up(self) -> Verdict:
        said = self._ask(_ASK % (self._script, self._plan, quoted(self._said)))
        try:
            return _read(said)
        except (TypeError, ValueError, AttributeError, KeyError) as error:
            raise ConfigError(
                f"web task {self._name!r}: its verdict() gave {said!r}: {error}; it gives "
                "{milestones: {name: true or false, …}, sideEffects: [text, …], harms: [text, …], "
                "ended: true or false}"
            ) from error

    def _ask(self, expression: str) -> Any:
        try:
            return self.page.evaluate(expression, isolated=True)
        except BrowserFailure as failure:
            if "a script of the page threw" in str(failure):
                raise ConfigError(
                    f"web task {self._name!r}: {self._name}{TASK_SUFFIX}: {failure}"
                ) from failure
            raise


def _read(said: Mapping[str, Any]) -> Verdict:
    milestones = {str(name): bool(reached) for name, reached in said["milestones"].items()}
    if not milestones:
        raise ValueError("no milestones")
    weights = {name: float(said.get("weights", {}).get(name, 1.0)) for name in milestones}
    effects = tuple(str(effect) for effect in said.get("sideEffects", ()))
    harms = tuple(str(harm) for harm in said.get("harms", ()))
    success = all(milestones.values()) and not effects and not harms
    share = sum(weights[name] for name, reached in milestones.items() if reached) / sum(weights.values())
    progress = share if success or share < 1 else 1 - 1 / (len(milestones) + 1)
    return Verdict(success, progress, milestones, effects, bool(said.get("ended", False)), harms=harms)


def _tasks(folder: Path, patterns: Sequence[str] | str | None) -> tuple[str, ...]:
    if not folder.is_dir():
        raise ConfigError(f"env gui/web: option folder={str(folder)!r} is not a folder (from {Path.cwd()})")
    names = sorted(path.name.removesuffix(TASK_SUFFIX) for path in folder.glob(f"*{TASK_SUFFIX}"))
    if lonely := [name for name in names if not (folder / f"{name}.html").is_file()]:
        raise ConfigError(
            f"env gui/web: {folder}: {lonely[0]}{TASK_SUFFIX} has no {lonely[0]}.html beside it"
        )
    asked = ["*"] if patterns is None else [patterns] if isinstance(patterns, str) else patterns
    found = tuple(name for name in names if any(fnmatch.fnmatchcase(name, pattern) for pattern in asked))
    if not found:
        raise ConfigError(
            f"env gui/web: {folder} has no task that {list(asked)} names; a task is NAME.html and "
            f"NAME{TASK_SUFFIX} (there are: {', '.join(names) or 'none'})"
        )
    return found
