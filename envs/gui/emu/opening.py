"""How an episode begins: its task, its world and the screen drawn, once for all that begin alike."""

from __future__ import annotations

from threading import Lock
from typing import NamedTuple

import numpy as np
from cachetools import LRUCache, cached

from vlrl.envs.gui.emu import update
from vlrl.envs.gui.emu.apps.settings import DEFAULTS
from vlrl.envs.gui.emu.drawing.paint import Compositor
from vlrl.envs.gui.emu.files import empty_disk, write
from vlrl.envs.gui.emu.sites.dense.visits import STORE as WEB
from vlrl.envs.gui.emu.sites.dense.visits import Visits
from vlrl.envs.gui.emu.state import World
from vlrl.envs.gui.emu.strings import speak
from vlrl.envs.gui.emu.task import Draw, Setup, Template, judge
from vlrl.envs.gui.emu.tasks.content.news import distracting
from vlrl.envs.gui.emu.variation import Variation
from vlrl.envs.gui.emu.windows.notices import STORE
from vlrl.envs.gui.emu.windows.scene import Scene
from vlrl.envs.gui.screen import Form
from vlrl.seeds import derive_seed

START_MS = (9 * 60 + 30) * 60_000
"""The virtual clock begins at half past nine, and up to six hours later."""
BEHIND = (
    *("browser", "calculator", "calendar", "clock", "contacts", "editor", "files", "mail", "paint"),
    *("settings", "spreadsheet"),
)
"""Apps whose windows lie behind a task's; a fixed list, so that a new app changes no seed's screen."""
KEPT_BYTES = 96_000_000
"""Of openings that are kept, some 40 at 640×480: the episodes of a group begin alike, and most at once."""


class Episode(NamedTuple):
    """Which task it is: with the same three, the same Setup is made again."""

    name: str
    level: int
    seed: int


class Opening(NamedTuple):
    """Where an episode begins; nothing of it is changed afterwards.

    Attributes:
        setup: the task.
        world: as it begins.
        scene: with its layers; to be copied.
        compositor: that has drawn it; to be copied.
    """

    setup: Setup
    world: World
    scene: Scene
    compositor: Compositor


def _with_windows(world: World, setup: Setup, form: Form, seed: int) -> World:
    """Open the task's windows, in front of others where the looks say so."""
    if form == "mobile" or setup.owns_windows:
        world = world._replace(settings={**world.settings, "windows": "one"})
    for count in (_others(seed), 0) if world.settings["windows"] == "many" else (0,):
        opened = world
        taken = {app for app, _ in setup.windows}
        others = [name for name in BEHIND if name not in taken]
        rng = np.random.default_rng(derive_seed("windows", seed))
        for index in rng.permutation(len(others))[:count].tolist():
            opened = update.launch(opened, others[index])
        for app, argument in setup.windows:
            opened = update.launch(opened, app, argument)
        verdict = judge(setup, opened, opened)
        if not verdict.ended and not any(verdict.milestones.values()):
            break  # the others are no part of what is to be done
    return opened


def _others(seed: int) -> int:
    """How many other windows are open."""
    return int(np.random.default_rng(derive_seed("others", seed)).integers(2, 5))


@cached(LRUCache(KEPT_BYTES, lambda kept: kept.compositor.num_bytes), lock=Lock(), info=True)
def opening(
    template: Template, episode: Episode, variation: Variation, form: Form, size: tuple[int, int]
) -> Opening:
    """Set the task up and draw what is to be seen."""
    looks = {**variation.draw(episode.seed), "form": form}
    speak(looks["language"], looks.pop("goal_language"))  # which is no part of the world
    rng = np.random.default_rng(derive_seed("setup", episode.name, episode.level, episode.seed))
    setup = template.make(Draw(rng, episode.level, looks))
    files = empty_disk()
    for path, content in setup.files.items():
        files = write(files, path, content, 0)
    settings = {**DEFAULTS, **looks, **setup.settings}
    minutes = int(np.random.default_rng(derive_seed("clock", episode.seed)).integers(6 * 60))
    world = World(files, settings, dict(setup.data), size, time_ms=START_MS + minutes * 60_000)
    world = world._replace(pointer=(size[0] // 2, size[1] // 2))
    if looks["toasts"] == "some" and STORE not in setup.data:
        come = distracting(episode.seed, world.time_ms)
        world = world._replace(store={**world.store, STORE: come})
    if settings["pages"] == "dense" and WEB not in setup.data:
        world = world._replace(store={**world.store, WEB: Visits(derive_seed("pages", episode.seed))})
    world = _with_windows(world, setup, form, episode.seed)
    scene, compositor = Scene(), Compositor(size)
    compositor.show(scene.layers(world))
    return Opening(setup, world, scene, compositor)
