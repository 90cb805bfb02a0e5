"""An environment on any backend: a codec reads the text, the backend acts, its verdict is the reward."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from vlrl.coordinates import Canvas
from vlrl.envs.gui.actions import Action, Answer, Click, Finish, Pixel, points_of
from vlrl.envs.gui.codecs.codec import ActionError, View
from vlrl.envs.gui.codecs.grammar.next_words import next_words
from vlrl.envs.gui.codecs.grammar.tolerance import Tolerance
from vlrl.envs.gui.codecs.open import open_codec
from vlrl.envs.gui.gestures import text_of
from vlrl.envs.gui.hits import element_at
from vlrl.envs.gui.screen import Backend, Screen, Verdict
from vlrl.errors import ConfigError
from vlrl.protocols import Observation, StepResult

RewardRule = Literal["success", "progress", "raw"]


@dataclass(frozen=True, slots=True)
class GuiRules:
    """How an episode on a screen is played and paid.

    Attributes:
        codec: the grammar of actions; see `vlrl env list` for their names.
        tolerance: "strict", "published" or "lenient": how much the codec forgives in a text's form; see
            docs/gui_actions.md. Actions that took a repair are counted in info.
        reward: "success" pays 1 at the end of an episode that reached its goal; "progress" pays each
            milestone when it is reached and takes back what is undone: the sum is the last progress; "raw"
            pays at the end what the world itself pays, of backends whose worlds do.
        max_steps: actions before the episode is truncated; None takes the task's own.
        invalid_penalty: taken for a text that is not an action.
        end: "goal" ends the episode when the goal is reached, "finish" when the agent says that it is done;
            None takes the task's own.
        shown_size: [width, height] of the screenshot as the model is given it, for the instructions that name
            it, and for coordinates where nobody says otherwise by `seen`; None is the screen's own.
        instructions: the system prompt, in place of the codec's own, which lists all its actions.
        widgets: say in info which widget an action met, for people to read; the accessibility tree is asked
            for it in every step.
    """

    codec: str = "plain"
    tolerance: Tolerance = "published"
    reward: RewardRule = "success"
    max_steps: int | None = None
    invalid_penalty: float = 0.0
    end: Literal["goal", "finish"] | None = None
    shown_size: Sequence[int] | None = None
    instructions: str | None = None
    widgets: bool = False

    def __post_init__(self) -> None:
        if self.reward not in ("success", "progress", "raw"):
            raise ConfigError(f"GUI option reward={self.reward!r}; success, progress or raw")
        if self.end not in (None, "goal", "finish"):
            raise ConfigError(f"GUI option end={self.end!r}; goal, finish or null")
        if self.max_steps is not None and self.max_steps < 1:
            raise ConfigError(f"GUI option max_steps={self.max_steps}; give a whole number from 1, or null")
        if not self.invalid_penalty >= 0:
            raise ConfigError(f"GUI option invalid_penalty={self.invalid_penalty}; give a number from 0")


class GuiEnv:
    """A task on a screen. A subclass makes its backend and says its options; see `vlrl.envs.gui.emu.env`."""

    reward_range = (-1.0, 1.0)

    def __init__(self, backend: Backend, **rules: Any) -> None:
        try:
            self.rules = GuiRules(**rules)
        except TypeError as error:
            raise ConfigError(f"GUI options {sorted(rules)}: {error}") from error
        self.backend, self.codec = backend, open_codec(self.rules.codec, self.rules.tolerance)
        if self.rules.widgets and not hasattr(backend, "elements"):
            raise ConfigError(f"GUI option widgets=true: {type(backend).__name__} does not know its widgets")
        width, height = self.rules.shown_size or backend.size
        said = self.rules.instructions
        self.system_prompt = self.codec.instructions((width, height), backend.form) if said is None else said
        self._screen: Screen | None = None
        self._canvas: Canvas | None = None
        for methods in (("oracle",), ("snapshot", "restore")):
            if not all(hasattr(backend, name) for name in methods):
                for name in methods:
                    setattr(self, name, None)  # callers ask whether it is callable

    def reset(self, task: Mapping[str, Any], seed: int) -> Observation:
        """Set the task up and show the screen with what is to be done."""
        self._canvas = None
        self._screen = self.backend.reset(task, seed)
        self._num_steps, self._paid, self._ended = 0, self.backend.verdict().progress, False
        self._num_repaired = 0
        return self._show(f"Task: {self.backend.goal}")

    def seen(self, canvases: Sequence[Canvas]) -> None:
        """Learn how the last observation's screenshot was given to the model: its coordinates are in that."""
        self._canvas = canvases[-1] if canvases else None

    def text_of_gesture(self, gesture: Mapping[str, Any]) -> tuple[str, bool]:
        """What a person did to the screen as the codec writes it, for `vlrl env play`; see `text_of`."""
        return text_of(self.codec, self.view, gesture)

    def step(self, action: str) -> StepResult:
        """Do what the text says.

        info has success, invalid, progress, settled, gui_action, num_steps, lenient_actions: how many actions
        so far were repaired (repairs names what this one took), agent_error: the agent broke the
        world itself, which ends the episode and is scored; and point: where it acted, "x,y x,y" in pixels of
        the screen before it. With the option widgets also widget, "role name", and
        widget_box, "x0,y0,x1,y1", of what lay at the first of them.
        """
        if self._screen is None or self._ended:
            raise RuntimeError("no episode is under way; call reset first")
        self._num_steps += 1
        view = self.view
        try:
            reading = self.codec.read(action, view)
            done = reading.action
            info = {"invalid": False, "gui_action": repr(done)} | self._places(done, view.pointer)
            self._num_repaired += bool(reading.repairs)
            if reading.repairs:
                info["repairs"] = " ".join(reading.repairs)
            self._screen = self.backend.perform(done)
        except ActionError as error:  # of the text, or of a machine that cannot do this
            said = f"That was no action: {error}."
            return self._result(
                said, self.rules.invalid_penalty, {"invalid": True, "gui_action": "", "point": ""}
            )
        return self._result("", 0.0, info, done)

    @property
    def view(self) -> View:
        """What the model is looking at; without `seen`, the screen as it is, or of shown_size."""
        screen = self._shown()
        size = (screen.pixels.shape[0], screen.pixels.shape[1])
        width, height = self.rules.shown_size or (size[1], size[0])
        return View(self._canvas or Canvas(size, (height, width)), screen.pointer)

    def oracle(self) -> str:
        """A right next action, in the codec's words."""
        backend: Any = self.backend
        return next_words(self.codec, backend.oracle(), self.view)

    def random_action(self, rng: np.random.Generator) -> str:
        """A click anywhere."""
        width, height = self.backend.size
        point = int(rng.integers(width)), int(rng.integers(height))
        return self.codec.format(Click(point), self.view)

    def null_actions(self) -> list[str]:
        """What an agent that looks at nothing might always say, in the codec's words (`vlrl env check`)."""
        width, height = self.backend.size
        wanted = (Click((width // 2, height // 2)), Finish(), Finish(success=False))
        said = []
        for action in wanted:
            with suppress(ActionError):
                said.append(self.codec.format(action, self.view))
        return said

    def snapshot(self) -> Any:
        """The episode as a value, if the backend's world is one."""
        backend: Any = self.backend
        counts = self._num_steps, self._num_repaired, self._paid, self._ended
        return backend.snapshot(), self._screen, counts

    def restore(self, state: Any) -> None:
        """Go on from a snapshot."""
        world, self._screen, (self._num_steps, self._num_repaired, self._paid, self._ended) = state
        backend: Any = self.backend
        backend.restore(world)

    def close(self) -> None:
        """Free the backend."""
        self._screen = None
        self.backend.close()

    def _result(
        self, text: str, penalty: float, more: Mapping[str, Any], done: Action | None = None
    ) -> StepResult:
        verdict = self.backend.verdict()
        self._ended = terminated = self._is_over(done, verdict)
        limit = self.rules.max_steps or self.backend.max_steps
        truncated = not terminated and self._num_steps >= limit
        self._ended |= truncated
        info = {
            "success": terminated and verdict.success,
            "progress": verdict.progress,
            "settled": self._shown().settled,
            "num_steps": self._num_steps,
            "lenient_actions": self._num_repaired,
            "agent_error": bool(verdict.agent_error),
            **more,
        }
        if verdict.reward is not None:
            info["raw_reward"] = verdict.reward
        reward = self._reward(verdict, terminated) - penalty
        return StepResult(self._show(text), reward, terminated, truncated, info)

    def _places(self, done: Action, pointer: Pixel) -> dict[str, str]:
        """Where an action acts, and on what; found before it does, as the widget may be gone afterwards."""
        acts_at_pointer = hasattr(done, "point") and not points_of(done)
        points = (pointer,) if acts_at_pointer else points_of(done)
        info = {"point": " ".join(f"{x},{y}" for x, y in points)}
        if self.rules.widgets and points:
            backend: Any = self.backend
            met = element_at(backend.elements(), points[0])
            if met is not None:
                info["widget"] = f"{met.role} {met.name}".strip()
                info["widget_box"] = ",".join(map(str, met.box))
        return info

    def _is_over(self, done: Action | None, verdict: Verdict) -> bool:
        if isinstance(done, Answer | Finish) or verdict.ended:
            return True
        at_goal = self.backend.ends_at_goal if self.rules.end is None else self.rules.end == "goal"
        return at_goal and verdict.success

    def _reward(self, verdict: Verdict, terminated: bool) -> float:
        if self.rules.reward == "success":
            return float(terminated and verdict.success)
        if self.rules.reward == "raw":
            if verdict.reward is None:
                raise ConfigError(f"GUI option reward=raw: {type(self.backend).__name__} has no reward")
            return verdict.reward if terminated else 0.0
        gained = verdict.progress - self._paid
        self._paid = verdict.progress
        return gained

    def _show(self, text: str) -> Observation:
        return Observation(text, [self._shown().pixels], summary=f"Task: {self.backend.goal}")

    def _shown(self) -> Screen:
        if self._screen is None:
            raise RuntimeError("no episode is under way; call reset first")
        return self._screen
