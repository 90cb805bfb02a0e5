"""The environment: a GuiEnv on an emulated desktop."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from functools import cache
from typing import Any

import numpy as np

from vlrl.envs.gui.actions import Action, Answer, Finish
from vlrl.envs.gui.codecs.open import can_say
from vlrl.envs.gui.emu import apps, tasks
from vlrl.envs.gui.emu.desktop import Desktop
from vlrl.envs.gui.emu.oracle.intents import Needing
from vlrl.envs.gui.emu.strings import speak
from vlrl.envs.gui.emu.task import TEMPLATES, Draw, Template
from vlrl.envs.gui.emu.variation import CHOICES, LEAST, Variation, fitting_scales
from vlrl.envs.gui.env import GuiEnv
from vlrl.envs.gui.rules import GuiRules
from vlrl.envs.gui.screen import Form
from vlrl.errors import ConfigError

SIZES = {"desktop": (640, 480), "mobile": (384, 704)}
MOST = (3840, 2160)
LEVELS = (1, 3)


class EmuEnv(GuiEnv):
    """An emulated desktop or phone with a task on it.

    The seed draws the task, its difficulty and variant, and the looks of the desktop: theme, font, font_size,
    scale, language, bar_side, menus, tools, title_buttons, wallpaper, widgets, windows. An option of
    that name pins each to a value or to a list to draw from; what is drawn of scales fits the screen. With
    toasts="some" notices that have nothing to do with the task come meanwhile; the default is "none". With
    pages="dense" the browser's pages are like real ones; with keyboard="screen" phones have a keyboard on the
    screen, with choices="sheet" their lists come from below. The defaults are "plain", "none" and "menu".
    Goals are in the language of the screen; goal_language="en" (or "de", "fr", "es") gives them in that one.
    """

    def __init__(
        self,
        size: Sequence[int] | None = None,
        form: Form = "desktop",
        tasks: Sequence[str] | str = "*",
        difficulty: Sequence[int] | int = LEVELS,
        **options: Any,
    ) -> None:
        """Say what it is like.

        Args:
            size: [width, height] of the screen in pixels; None is 640×480, and 384×704 of a phone.
            form: "desktop" or "mobile".
            tasks: names of templates to draw from, or patterns such as "editor/*".
            difficulty: the level, 1 to 3, or [least, most].
            options: pins of the looks, and the options of `GuiRules`.

        Raises:
            ConfigError: for an unknown option or value.
        """
        if form not in SIZES:
            raise ConfigError(f"gui/emu option form={form!r}; desktop or mobile")
        pins = {key: options.pop(key) for key in list(options) if key in CHOICES}
        low, high = (difficulty, difficulty) if isinstance(difficulty, int) else tuple(difficulty)
        if not LEVELS[0] <= low <= high <= LEVELS[1]:
            raise ConfigError(
                f"gui/emu option difficulty={difficulty!r}; give a level 1 to 3 or [least, most]"
            )
        chosen = chosen_templates([tasks] if isinstance(tasks, str) else tasks, form, (low, high))
        grammar = str(options.get("codec", GuiRules().codec))
        chosen = sayable(chosen, form, grammar)
        pixels = _size(size, form)
        desktop = Desktop(pixels, form, chosen, (low, high), _variation(pins, form, pixels))
        super().__init__(desktop, **options)


def chosen_templates(patterns: Sequence[str], form: Form, difficulty: tuple[int, int]) -> list[Template]:
    """The templates that patterns name, that can be done on the form and have a level within limits.

    Raises:
        ConfigError: for a pattern that matches none, or if none is left.
    """
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in TEMPLATES):
            raise ConfigError(
                f"gui/emu option tasks: {pattern!r} names none of {', '.join(sorted(TEMPLATES))}"
            )
    found = [
        template
        for name, template in sorted(TEMPLATES.items())
        if any(fnmatchcase(name, pattern) for pattern in patterns)
        and form in template.forms
        and any(difficulty[0] <= level <= difficulty[1] for level in template.levels)
    ]
    if not found:
        raise ConfigError(
            f"gui/emu: no task of {list(patterns)} is for {form} at difficulty {list(difficulty)}"
        )
    return found


def sayable(templates: Sequence[Template], form: Form, codec: str) -> list[Template]:
    """Those whose solutions a grammar has words for: answers, drags, context menus.

    Raises:
        ConfigError: if none is left.
    """
    left: list[Template] = []
    lacking: set[str] = set()
    for template in templates:
        missing = [action for action in needs(template, form) if not can_say(codec, action)]
        lacking.update(type(action).__name__ for action in missing)
        if not missing:
            left.append(template)
    if not left:
        raise ConfigError(
            f"gui/emu: the tasks {', '.join(template.name for template in templates)} take actions that the "
            f"codec {codec!r} has no word for, such as {', '.join(sorted(lacking))}; see docs/gui_actions.md"
        )
    return left


@cache
def needs(template: Template, form: Form) -> tuple[Action, ...]:
    """Examples of the actions that its tasks take, at any level, and that not every grammar can say."""
    looks = {**Variation({}).draw(0), "form": form}
    speak(looks["language"], looks.pop("goal_language"))
    found: list[Action] = []
    found += [Finish(False)] * template.may_refuse
    for level in template.levels:
        setup = template.make(Draw(np.random.default_rng(0), level, looks))
        found += [Answer("1")] * (setup.answer is not None)
        for intent in setup.oracle:
            if isinstance(intent, Needing):
                found.append(intent.by_hand if form == "mobile" else intent.example)
    return tuple(dict.fromkeys(found))


def _variation(pins: dict[str, Any], form: Form, size: tuple[int, int]) -> Variation:
    """The looks to draw from, at those scales that the screen has room for."""
    scales = Variation(pins).choices["scale"]
    fitting = fitting_scales(form, size, scales)
    if not fitting:
        least = LEAST[form][min(scales)]
        raise ConfigError(
            f"gui/emu option scale={pins['scale']!r} needs a {form} of {list(least)}; size is {list(size)}"
        )
    return Variation({**pins, "scale": fitting})


def _size(size: Sequence[int] | None, form: Form) -> tuple[int, int]:
    if size is None:
        return SIZES[form]
    least = LEAST[form][100]
    if len(size) != 2 or not all(least[i] <= size[i] <= MOST[i] for i in (0, 1)):
        raise ConfigError(
            f"gui/emu option size={list(size)}; give [width, height] of a {form} from {list(least)} to "
            f"{list(MOST)} (to show it to a model in fewer pixels, see shown_size)"
        )
    return int(size[0]), int(size[1])


__all__ = ["EmuEnv", "apps", "tasks"]
