"""An environment on any backend: a codec reads the text, the backend acts, its verdict is the reward."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from vlrl.coordinates import Canvas
from vlrl.envs.gui.actions import Action, Answer, Click, Finish, Pixel, points_of
from vlrl.envs.gui.codecs.codec import ActionError, View
from vlrl.envs.gui.codecs.grammar.next_words import next_words
from vlrl.envs.gui.codecs.grammar.several import read_several
from vlrl.envs.gui.codecs.grammar.tolerance import Reading
from vlrl.envs.gui.codecs.open import open_codec
from vlrl.envs.gui.gestures import text_of
from vlrl.envs.gui.hits import element_at
from vlrl.envs.gui.marks import ScreenMark, marks_of, tree_text, with_marks
from vlrl.envs.gui.rules import GuiRules
from vlrl.envs.gui.screen import UNCLEAN, Backend, Screen, Verdict
from vlrl.errors import ConfigError
from vlrl.protocols import Observation, StepResult

_NOT_AN_ACTION = {"invalid": True, "gui_action": "", "point": ""}


class GuiEnv:
    """A task on a screen. A subclass makes its backend and says its options; see `vlrl.envs.gui.emu.env`."""

    reward_range = (-1.0, 1.0)

    def __init__(self, backend: Backend, **rules: Any) -> None:
        try:
            self.rules = GuiRules(**rules)
        except TypeError as error:
            raise ConfigError(f"GUI options {sorted(rules)}: {error}") from error
        self.backend, self.codec = backend, open_codec(self.rules.codec, self.rules.tolerance)
        self._check_rules()
        self.system_prompt = self._instructions()
        self._screen: Screen | None = None
        self._marks: list[ScreenMark] = []
        self._num_steps = self._num_repaired = 0
        self._harms: tuple[str, ...] = ()
        self._is_harm_paid = False
        self._canvas: Canvas | None = None
        for methods in (("oracle",), ("snapshot", "restore"), ("end_episode",)):
            if not all(hasattr(backend, name) for name in methods):
                for name in methods:
                    setattr(self, name, None)  # callers ask whether it is callable

    def reset(self, task: Mapping[str, Any], seed: int) -> Observation:
        """Set the task up and show the screen with what is to be done."""
        self._canvas = None
        self._screen = self.backend.reset(task, seed)
        self._num_steps, self._paid, self._ended = 0, self.backend.verdict().progress, False
        self._num_repaired, self._harms, self._is_harm_paid = 0, (), False
        return self._show(f"Task: {self.backend.goal}")

    @property
    def task_info(self) -> Mapping[str, Any]:
        """What the episode's task is, as far as the backend says it: task and level."""
        return dict(getattr(self.backend, "task_info", {}))

    def seen(self, canvases: Sequence[Canvas]) -> None:
        """Learn how the last observation's screenshot was given to the model: its coordinates are in that."""
        self._canvas = canvases[-1] if canvases else None

    def text_of_gesture(self, gesture: Mapping[str, Any]) -> tuple[str, bool]:
        """What a person did to the screen as the codec writes it, for `vlrl env play`; see `text_of`."""
        return text_of(self.codec, self.view, gesture)

    def step(self, action: str) -> StepResult:
        """Do what the text says, one action or, with the option actions_per_turn, several.

        info has success, invalid, progress, settled, gui_action, num_steps, lenient_actions: how many actions
        so far were repaired (repairs names what this one took), agent_error: the agent broke the
        world itself, which ends the episode and is scored; harm: it did what cannot be undone and was not
        asked for, or what a text on the screen asked for (harms says what); and point: where it acted,
        "x,y x,y" in pixels of the screen before it. With the option widgets also widget, "role name", and
        widget_box, "x0,y0,x1,y1", of what lay at the first of them. Of several actions gui_action,
        "A(…); B(…)", and point have all that were done.
        """
        if self._screen is None or self._ended:
            raise RuntimeError("no episode is under way; call reset first")
        try:
            readings = read_several(self.codec, action, self.view, self.rules.actions_per_turn)
        except ActionError as error:
            self._num_steps += 1
            return self._result(f"That was no action: {error}.", self.rules.invalid_penalty, _NOT_AN_ACTION)
        return self._play(readings)

    def _play(self, readings: Sequence[Reading]) -> StepResult:
        """Do actions one after the other, as long as the episode goes on."""
        done_so_far: list[dict[str, str]] = []
        for number, reading in enumerate(readings, 1):
            done = reading.action
            self._num_steps += 1
            done_so_far.append(self._said(reading))
            try:
                self._screen = self.backend.perform(done)
            except ActionError as error:  # a machine that cannot do this
                said = f"That was no action: {error}."
                return self._result(said, self.rules.invalid_penalty, _NOT_AN_ACTION)
            self._num_repaired += bool(reading.repairs)
            is_last = number == len(readings) or self._num_steps >= self._max_steps
            if is_last or self._is_over(done, self._verdict()):
                break
        return self._result("", 0.0, {"invalid": False, **_joined(done_so_far)}, done)

    @property
    def view(self) -> View:
        """What the model is looking at; without `seen`, the screen as it is, or of shown_size."""
        screen = self._shown()
        size = (screen.pixels.shape[0], screen.pixels.shape[1])
        width, height = self.rules.shown_size or (size[1], size[0])
        return View(self._canvas or Canvas(size, (height, width)), screen.pointer, self._marks)

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
        harm = self._harms, self._is_harm_paid
        return backend.snapshot(), (self._screen, self._marks), counts, harm

    def restore(self, state: Any) -> None:
        """Go on from a snapshot."""
        world, (self._screen, self._marks), counts, (self._harms, self._is_harm_paid) = state
        self._num_steps, self._num_repaired, self._paid, self._ended = counts
        backend: Any = self.backend
        backend.restore(world)

    def end_episode(self) -> None:
        """Have the backend give back what only the episode needs."""
        backend: Any = self.backend
        self._screen = None
        backend.end_episode()

    def close(self) -> None:
        """Free the backend."""
        self._screen = None
        self.backend.close()

    def _result(
        self, text: str, penalty: float, more: Mapping[str, Any], done: Action | None = None
    ) -> StepResult:
        verdict = self._verdict()
        self._ended = terminated = self._is_over(done, verdict)
        truncated = not terminated and self._num_steps >= self._max_steps
        self._ended |= truncated
        info = {
            "success": terminated and verdict.success,
            "progress": verdict.progress,
            "settled": self._shown().settled,
            "num_steps": self._num_steps,
            "lenient_actions": self._num_repaired,
            "agent_error": bool(verdict.agent_error),
            "harm": bool(self._harms),
            **more,
        }
        if verdict.reward is not None:
            info["raw_reward"] = verdict.reward
        if self._harms:
            info["harms"] = "; ".join(self._harms)
            penalty += 0.0 if self._is_harm_paid else self.rules.harm_penalty
            self._is_harm_paid = True
        reward = self._reward(verdict, terminated) - penalty
        return StepResult(self._show(text), reward, terminated, truncated, info)

    def _verdict(self) -> Verdict:
        """How the task stands. Harm stays: what has done some is no success any more."""
        verdict = self.backend.verdict()
        self._harms = tuple(dict.fromkeys(self._harms + verdict.harms))
        if not self._harms or not verdict.success:
            return verdict
        return replace(verdict, success=False, progress=UNCLEAN)

    @property
    def _max_steps(self) -> int:
        return self.rules.max_steps or self.backend.max_steps

    def _check_rules(self) -> None:
        for rule, needs in (("widgets", self.rules.widgets), ("observe", self.rules.observe != "screenshot")):
            if needs and not hasattr(self.backend, "elements"):
                value, name = getattr(self.rules, rule), type(self.backend).__name__
                raise ConfigError(f"GUI option {rule}={value}: {name} does not know its widgets")
        if self.rules.observe == "marks" and not self.codec.mark_example:
            raise ConfigError(
                f"GUI option observe=marks: the codec {self.rules.codec!r} cannot name a number; plain and "
                "androidworld can, and observe=tree or both says places to the others"
            )

    def _instructions(self) -> str:
        """The system message: the codec's, and what marks and several actions add to it."""
        if self.rules.instructions is not None:
            return self.rules.instructions
        width, height = self.rules.shown_size or self.backend.size
        said = [self.codec.instructions((width, height), self.backend.form)]
        if self.rules.observe != "screenshot" and self.codec.mark_example:
            said.append(
                f"Widgets have numbers. An action may name one in the place of coordinates: "
                f"{self.codec.mark_example}"
            )
        if self.rules.actions_per_turn > 1:
            most = self.rules.actions_per_turn
            said.append(f"A message may have up to {most} actions, which are done in their order.")
        return "\n".join(said)

    def _said(self, reading: Reading) -> dict[str, str]:
        """What info says of an action, before it is done: the widget that it meets may be gone afterwards."""
        repairs = {"repairs": " ".join(reading.repairs)} if reading.repairs else {}
        pointer = self._shown().pointer
        return {"gui_action": repr(reading.action), **self._places(reading.action, pointer), **repairs}

    def _places(self, done: Action, pointer: Pixel) -> dict[str, str]:
        """Where an action acts, and on what."""
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
        goal, pixels, observe = f"Task: {self.backend.goal}", self._shown().pixels, self.rules.observe
        if observe == "screenshot":
            return Observation(text, [pixels], summary=goal)
        backend: Any = self.backend
        elements = backend.elements()
        found = marks_of(elements, backend.size)
        named = bool(self.codec.mark_example)
        self._marks = [mark for _, mark in found] if named else []
        images = [] if observe == "tree" else [with_marks(pixels, self._marks)]
        if observe != "marks":
            view = self.view
            tree = tree_text(elements, found, None if named else lambda pixel: self.codec.place(pixel, view))
            text = f"{text}\n\nThe screen:\n{tree}".lstrip("\n")
        return Observation(text, images, summary=goal)

    def _shown(self) -> Screen:
        if self._screen is None:
            raise RuntimeError("no episode is under way; call reset first")
        return self._screen


def _joined(said: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """What info says of several actions; the widget is the first one's."""
    found = dict(said[0])
    for key, between in (("gui_action", "; "), ("point", " "), ("repairs", " ")):
        parts = [each[key] for each in said if each.get(key)]
        if parts:
            found[key] = between.join(parts)
    return found
