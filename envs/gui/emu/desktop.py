"""The backend: an emulated desktop with a task on it. Its state is a value, its pixels a function of that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from operator import is_not
from typing import Any, NamedTuple

import numpy as np

from vlrl.envs.gui.actions import (
    Action,
    Click,
    Drag,
    Key,
    LongPress,
    Move,
    Pixel,
    Swipe,
    SystemButton,
    points_of,
)
from vlrl.envs.gui.emu.drawing.paint import Compositor, Layer
from vlrl.envs.gui.emu.drawing.pointer_shape import DOUBLED_FROM, paste_pointer
from vlrl.envs.gui.emu.drawing.screenshots import Screenshots
from vlrl.envs.gui.emu.input import acts
from vlrl.envs.gui.emu.opening import Episode, Opening, opening
from vlrl.envs.gui.emu.oracle.intents import may_end, next_of
from vlrl.envs.gui.emu.oracle.reach import Locator, Stuck
from vlrl.envs.gui.emu.state import World
from vlrl.envs.gui.emu.strings import speak
from vlrl.envs.gui.emu.task import TEMPLATES, Setup, Template, judge, read_by_predicates
from vlrl.envs.gui.emu.variation import Variation
from vlrl.envs.gui.emu.windows.elements import elements_of
from vlrl.envs.gui.emu.windows.scene import Scene, widget_at
from vlrl.envs.gui.marks import ALIKE_ANYWHERE
from vlrl.envs.gui.screen import Element, Form, Screen, Verdict
from vlrl.errors import ConfigError
from vlrl.seeds import derive_seed

TASK_KEYS = {"name", "difficulty"}
GRAIN_PX = 4
"""How far off a place may be read back: half a pixel and half a step of 92 numbers on 640 pixels."""


class Snapshot(NamedTuple):
    """Everything that an episode is.

    Attributes:
        initial: the world at its start.
        position: how far the oracle's list has been done.
    """

    episode: Episode
    world: World
    initial: World
    position: int


class Desktop:
    """An emulated desktop or phone."""

    def __init__(
        self,
        size: tuple[int, int],
        form: Form,
        templates: Sequence[Template],
        difficulty: tuple[int, int],
        variation: Variation,
    ) -> None:
        """Say what it is like.

        Args:
            size: (width, height) of the screen in pixels.
            form: a desktop or a phone.
            templates: whose tasks are drawn.
            difficulty: the least and the greatest level.
            variation: of its looks.
        """
        self.size, self.form = size, form
        self.templates, self.difficulty, self.variation = templates, difficulty, variation
        self._scene, self._compositor, self._screenshots = Scene(), Compositor(size), Screenshots(size)
        self._setup: Setup | None = None
        self._now: Snapshot | None = None
        self._shown: tuple[tuple[Layer, ...], Screen] | None = None
        self._judged: tuple[tuple[Any, ...], Verdict] | None = None

    def reset(self, task: Mapping[str, Any], seed: int) -> Screen:
        """Draw a task and set it up; {"name": …, "difficulty": …} chooses it.

        Raises:
            ConfigError: for an unknown task or key.
        """
        unknown = set(task) - TASK_KEYS
        if unknown:
            raise ConfigError(f"gui/emu task has unknown keys {sorted(unknown)}; known: name, difficulty")
        rng = np.random.default_rng(derive_seed("task", seed))
        drawn = int(rng.integers(2**31)), int(rng.integers(2**31))  # both drawn always: a pin shifts nothing
        template = self._template(task.get("name"), drawn[0])
        least, most = self.difficulty
        levels = [level for level in template.levels if least <= level <= most] or list(template.levels)
        level = int(task.get("difficulty") or levels[drawn[1] % len(levels)])
        if level not in template.levels:
            raise ConfigError(f"gui/emu task {template.name!r} has no difficulty {level}; {template.levels}")
        episode = Episode(template.name, level, seed)
        begun = self._opening(episode)
        self._setup, self._now = begun.setup, Snapshot(episode, begun.world, begun.world, 0)
        self._scene, self._compositor = begun.scene.copy(), begun.compositor.copy()
        self._screenshots.forget()
        return self._show()

    @property
    def goal(self) -> str:
        """What the agent is asked to do."""
        return self.setup.goal

    @property
    def max_steps(self) -> int:
        """The task's own, or four for each of the oracle's intents and some more."""
        return self.setup.max_steps or 4 * len(self.setup.oracle) + 10

    @property
    def ends_at_goal(self) -> bool:
        """What the task says; one that asks for an answer ends with that."""
        return self.setup.ends_at_goal and self.setup.answer is None

    @property
    def setup(self) -> Setup:
        """The task at hand."""
        if self._setup is None:
            raise RuntimeError("no episode is under way; call reset first")
        return self._setup

    @property
    def world(self) -> World:
        """Everything there is."""
        return self.snapshot().world

    def perform(self, action: Action) -> Screen:
        """Do it and show the result."""
        now = self.snapshot()
        speak(now.world.settings["language"])
        position = now.position + self._is_oracle_done(action)
        world = acts.act(self._scene, now.world, action)
        self._now = now._replace(world=world, position=position)
        return self._show()

    def verdict(self) -> Verdict:
        """How the task stands."""
        now = self.snapshot()
        read = (now.initial, *read_by_predicates(now.world))
        if self._judged is None or any(map(is_not, self._judged[0], read)):
            self._judged = read, judge(self.setup, now.initial, now.world)
        return self._judged[1]

    def oracle(self) -> Action:
        """The next action of somebody who knows how; right as long as only its actions were done.

        Raises:
            Stuck: if what it looks for is not on the screen, or it is through.
        """
        now = self.snapshot()
        speak(now.world.settings["language"])
        return next_of(self.setup.oracle[now.position :], Locator(self._scene, now.world))[0]

    @property
    def task_info(self) -> Mapping[str, Any]:
        """Name and level of the task."""
        episode = self.snapshot().episode
        return {"task": episode.name, "level": episode.level}

    def elements(self) -> Sequence[Element]:
        """Every widget, in the order of drawing."""
        world = self.snapshot().world
        return elements_of(self._scene, world)

    def snapshot(self) -> Snapshot:
        """The whole episode as a value; nothing is copied."""
        if self._now is None:
            raise RuntimeError("no episode is under way; call reset first")
        return self._now

    def restore(self, snapshot: Snapshot) -> None:
        """Go on from a snapshot, of this desktop or of another with the same options."""
        if self._now is None or self._now.episode != snapshot.episode:
            self._setup = self._opening(snapshot.episode).setup
        self._now = snapshot

    def close(self) -> None:
        """Let everything go."""
        self._now = self._setup = self._shown = self._judged = None
        self._screenshots = Screenshots(self.size)

    def _template(self, name: Any, drawn: int) -> Template:
        if name is None:
            return self.templates[drawn % len(self.templates)]
        if name not in TEMPLATES:
            raise ConfigError(f"gui/emu has no task {name!r}; known: {', '.join(TEMPLATES)}")
        return TEMPLATES[name]

    def _opening(self, episode: Episode) -> Opening:
        begun = opening(TEMPLATES[episode.name], episode, self.variation, self.form, self.size)
        speak(begun.world.settings["language"])
        return begun

    def _is_oracle_done(self, action: Action) -> bool:
        """Whether this action is the last of the intent that the oracle is at."""
        now = self.snapshot()
        left = self.setup.oracle[now.position :]
        if not left or not may_end(left[0], action):
            return False
        try:
            wanted, is_last = next_of(left, Locator(self._scene, now.world))
        except Stuck:
            return False
        is_as_wanted = wanted == action or _is_as_written(action, wanted)
        return is_last and (is_as_wanted or self._is_on_the_same(action, wanted))

    def _is_on_the_same(self, action: Action, wanted: Action) -> bool:
        """Whether it is the wanted click elsewhere on the same button, link or row, as at a mark."""
        points = points_of(action) + points_of(wanted)
        if not isinstance(action, Click | LongPress) or len(points) != 2 or _at(action, points[1:]) != wanted:
            return False
        layers = [self._scene.at(self.world, x, y) for x, y in points]
        if layers[0] is None or layers[0] is not layers[1]:
            return False
        first, second = (widget_at(layers[0], x, y) for x, y in points)
        return first is not None and first is second and first.widget.role in ALIKE_ANYWHERE

    def _show(self) -> Screen:
        """The screen; the same one where nothing on it has changed, so that nobody may write to it."""
        world = self.snapshot().world
        layers, pointer = self._scene.layers(world), world.pointer
        if self._shown is not None and self._shown[0] is layers and self._shown[1].pointer == pointer:
            return self._shown[1]
        self._shown = None  # if nobody else has that screenshot, its memory is used again
        screen = self._compositor.show(layers)
        self._screenshots.changed(self._compositor.changed)
        memory = self._screenshots.take(screen)
        if self.form == "desktop":
            times = 2 if world.settings["scale"] >= DOUBLED_FROM else 1
            memory.stale = paste_pointer(memory.pixels, times, pointer)
        self._shown = layers, Screen(memory.given(), pointer)
        return self._shown[1]


def _is_as_written(done: Action, wanted: Action) -> bool:
    """Whether it is the wanted one as a grammar writes it: in numbers of a coarse frame, or for a finger."""
    if wanted == Key(("enter",)):
        return done == SystemButton("enter")
    if isinstance(wanted, Drag) and isinstance(done, Swipe):
        done = Drag((done.start, done.end))
    here, there = points_of(done), points_of(wanted)
    if not there or len(here) != len(there):
        return False
    off_px = max(abs(a - b) for p, q in zip(here, there, strict=True) for a, b in zip(p, q, strict=True))
    return off_px <= GRAIN_PX and _at(done, there) == wanted


def _at(action: Action, points: Sequence[Pixel]) -> Action:
    """The same action at other places."""
    match action:
        case Drag():
            return replace(action, path=tuple(points))
        case Click() | LongPress() | Move():
            return replace(action, point=points[0])
        case _:
            return action
