"""The environment gui/browsergym: any registered task of BrowserGym."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from vlrl.envs.gui.actions import Action, Answer
from vlrl.envs.gui.browsergym.backend import BrowserGymBackend
from vlrl.envs.gui.env import GuiEnv
from vlrl.envs.gui.screen import Verdict
from vlrl.protocols import Observation


class BrowserGymEnv(GuiEnv):
    """Tasks of BrowserGym's packages, scored by them; by default the reward is the sum of their rewards.

    An episode ends when the task says so, and when the agent answers or gives up. A task that replies to an
    answer goes on.
    """

    backend: BrowserGymBackend

    def __init__(
        self,
        tasks: Sequence[str] | str,
        python: str | None = None,
        packages: Sequence[str] = (),
        make: Mapping[str, Any] | None = None,
        size: Sequence[int] | None = None,
        task_steps: int = 30,
        chromium: str = "",
        deadlines: Mapping[str, float] | None = None,
        goal_images: Literal["first", "every"] = "first",
        reward: Literal["success", "progress", "raw"] = "raw",
        **rules: Any,
    ) -> None:
        """Take the options and start the program.

        Args:
            tasks: names or patterns such as browsergym/miniwob.click-*; one is sampled from the seed.
            python: the interpreter that has BrowserGym; null is the one that runs vlrl.
            packages: modules or ./files.py that register tasks, beside those that the names of tasks tell:
                browsergym/webarena.7 is of browsergym.webarena.
            make: other arguments of BrowserGym's environment, such as slow_mo, viewport, task_kwargs.
            size: [width, height] of the screenshots; null is [498, 321] of MiniWoB, else the viewport of
                make, else [1280, 720].
            task_steps: actions that a task allows for.
            chromium: path of the browser; empty is Playwright's own, else the first one on the PATH.
            deadlines: seconds by phase: reset_s (120), step_s (60), close_s (5); a program that takes longer
                is ended, with its browser.
            goal_images: the goal's images are shown with the first observation, or with every one.
            reward: as of `GuiRules`; "raw" is the sum of BrowserGym's rewards, "progress" gives each when it
                comes.
            **rules: see `vlrl.envs.gui.rules.GuiRules`.
        """
        wants_elements = rules.get("observe", "screenshot") != "screenshot" or bool(rules.get("widgets"))
        backend = BrowserGymBackend(
            tasks, python, packages, make or {}, size, task_steps, chromium, deadlines, wants_elements
        )
        self._goal_images = goal_images
        try:
            super().__init__(backend, reward=reward, **rules)
        except BaseException:
            backend.close()
            raise

    def _show(self, text: str) -> Observation:
        """The screenshot last: coordinates are in the last image."""
        shown = super()._show("\n".join(filter(None, [text, *self.backend.remarks])))
        if self._num_steps and self._goal_images == "first":
            return shown
        return replace(shown, images=[*self.backend.goal_images, *shown.images])

    def _is_over(self, done: Action | None, verdict: Verdict) -> bool:
        if isinstance(done, Answer) and self.backend.was_answered:
            return verdict.ended
        return super()._is_over(done, verdict)
