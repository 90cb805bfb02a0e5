"""Grounding without labels: a screenshot, words that name one widget, and the widget's own box as the answer.

The widget comes from the accessibility tree, so that any backend with `elements` gives rows. The answer is an
action, {"action": "click", "bbox": [x0, y0, x1, y1]} in original pixels, as `vlrl.rewards.agents.gui` takes
it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from vlrl.environment.observe import message_of
from vlrl.environment.open import open_env
from vlrl.envs.gui.actions import Click
from vlrl.envs.gui.codecs.codec import Codec
from vlrl.envs.gui.codecs.open import open_codec
from vlrl.envs.gui.env import GuiEnv
from vlrl.envs.gui.hits import UNREACHABLE, element_at
from vlrl.envs.gui.screen import Element
from vlrl.errors import ConfigError, DataError, NoOracle
from vlrl.processors.messages import message_of as text_message
from vlrl.protocols import Observation
from vlrl.seeds import derive_seed
from vlrl.types import Row

ROLES: Mapping[str, str] = {
    "button": "button",
    "checkbox": "check box",
    "combobox": "drop-down list",
    "link": "link",
    "listitem": "entry",
    "menuitem": "menu entry",
    "option": "option",
    "radio": "option",
    "row": "row",
    "searchbox": "search field",
    "slider": "slider",
    "spinbutton": "number field",
    "switch": "switch",
    "tab": "tab",
    "textbox": "text field",
    "treeitem": "entry",
}
"""Roles of what people click → what they call it."""

BY_NAME = ("Click '{name}'.", "Click on '{name}'.", "Where is '{name}'? Click it.")
BY_ROLE = ("Click the {role} '{name}'.", "Click on the {role} named '{name}'.", "Find the {role} '{name}'.")

_REMEDY = "Use gui/emu, gui/web or gui/miniwob"
LEAST_PX, MOST_LETTERS = 6, 48
ATTEMPTS = 16
"""Screens looked at for one that shows a widget with a name of its own."""
NEAREST = 4
"""Widgets near a place anywhere of which one is named."""
MANY, ATTEMPTS_FOR_MANY = 6, 8
"""So many such widgets make a good screen, and so many screens are looked at for one. An empty desktop shows
one widget, its launcher: were it taken, clicking there without looking would be right in two rows of five."""


class GuiGrounding:
    """Rows of one click each; a row is the same for the same options on every machine where its backend is.

    A screen is reached by a few of the oracle's actions and clicks anywhere, and one widget is named that can
    be seen whole and is the only one so named.
    """

    def __init__(
        self,
        env: str = "gui/emu",
        options: Mapping[str, Any] | None = None,
        codec: str = "qwen2_5_computer_use",
        shown_size: Sequence[int] | None = None,
        num_rows: int = 4096,
        max_actions: int = 6,
        split: Literal["train", "heldout"] = "train",
        seed: int = 0,
    ) -> None:
        """Choose the screens.

        Args:
            env: a registered GUI environment whose backend knows its widgets.
            options: the environment's own.
            codec: grammar of instructions and target; the row's metadata name it for `click_in_box`.
            shown_size: [width, height] of the screenshot as the model is given it, for codecs that write its
                pixels; None is the screen's own.
            num_rows: screens, each of its own seed.
            max_actions: most actions before the screenshot.
            split: the two never share a seed.
            seed: of the rows' seeds.

        Raises:
            ConfigError: for a wrong option, or an environment that does not know its widgets.
        """
        where = f"dataset gui_grounding ({env})"
        if split not in ("train", "heldout"):
            raise ConfigError(f"{where}: split={split!r} is not one of train, heldout")
        if num_rows < 1 or max_actions < 0:
            raise ConfigError(
                f"{where}: num_rows={num_rows} must be from 1, max_actions={max_actions} from 0"
            )
        self._env, self._num_rows, self._max_actions = env, num_rows, max_actions
        # Any codec may ask for one click; only the plain one can say every action that leads to the screen.
        self._options = {**(options or {}), "codec": "plain", "shown_size": shown_size}
        self._codec = open_codec(codec)
        self._split, self._seed = split, seed
        opened = open_env(env, self._options)
        try:
            if not isinstance(opened, GuiEnv) or not hasattr(opened.backend, "elements"):
                raise ConfigError(f"{where}: it does not know its widgets. {_REMEDY}")
        finally:
            opened.close()

    def write_screenspot(self, folder: Path, on_row: Callable[[int], None]) -> dict[str, Any]:
        """Write the rows in ScreenSpot-v2's form; see `vlrl.envs.gui.screenspot_files`."""
        from vlrl.envs.gui.screenspot_files import write_screenspot

        return write_screenspot(self, folder, on_row)

    def __len__(self) -> int:
        """Number of rows."""
        return self._num_rows

    def __getitem__(self, index: int) -> Row:
        """Row `index`.

        Raises:
            DataError: if no screen tried shows a widget that can be named.
        """
        name = f"gui_grounding/{self._env}/{self._split}/{index}"
        env: Any = open_env(self._env, self._options)
        roles: set[str] = set()
        try:
            most, richest = 0, 0
            for attempt in range(ATTEMPTS):
                found = self._screen(env, index, attempt)
                named = found[1]
                roles |= {element.role for element in env.backend.elements()}
                if len(named) > most:
                    most, richest = len(named), attempt
                if most >= MANY or (most and attempt + 1 >= ATTEMPTS_FOR_MANY):
                    break
            if most:
                shown, named, rng = found if richest == attempt else self._screen(env, index, richest)
                return {"id": name, **_row(env, self._codec, shown, named, rng)}
        finally:
            env.close()
        raise DataError(
            f"sample {name!r}: none of {ATTEMPTS} screens shows a widget with a name of its own; "
            f"{self._env} has {', '.join(sorted(roles)) or 'nothing'}. {_REMEDY}"
        )

    def _screen(
        self, env: Any, index: int, attempt: int
    ) -> tuple[Observation, list[tuple[Element, bool]], np.random.Generator]:
        """One screen of a row: what is shown, what of it can be named, and what else is random in the row."""
        seed = self.screen_seed(index, attempt)
        rng = np.random.default_rng(derive_seed("gui grounding", seed))
        shown = _reach(env, seed, rng, self._max_actions)
        return shown, nameable(env.backend.elements(), env.backend.size), rng

    def screen_seed(self, index: int, attempt: int = 0) -> int:
        """The seed of a row's screen: even in train, odd in heldout, so that they cannot meet."""
        drawn = derive_seed("gui grounding rows", self._env, self._seed, self._split, index, attempt)
        return drawn // 2 * 2 + (self._split == "heldout")


def nameable(elements: Sequence[Element], size: tuple[int, int]) -> list[tuple[Element, bool]]:
    """The widgets that words can name: seen whole, with a role that is clicked, and alone of that name.

    Args:
        elements: in the order of drawing.
        size: (width, height) of the screen.

    Returns:
        Each with whether its name alone, without its role, says which it is.
    """
    seen = [e for e in elements if not e.states & UNREACHABLE]
    names = Counter(_folded(e.name) for e in seen)
    pairs = Counter((ROLES.get(e.role, e.role), _folded(e.name)) for e in seen)
    return [
        (e, names[_folded(e.name)] == 1)
        for e in seen
        if e.role in ROLES
        and pairs[ROLES[e.role], _folded(e.name)] == 1
        and not e.states & {"clipped", "disabled"}
        and _is_short(e.name)
        and _is_whole(e, elements, size)
    ]


def _folded(name: str) -> str:
    return name.strip().casefold()


def _is_short(name: str) -> bool:
    """True for a name with a letter or digit that fits between quotes in one line."""
    return (
        any(map(str.isalnum, name)) and len(name) <= MOST_LETTERS and name.isprintable() and "'" not in name
    )


def _is_whole(element: Element, elements: Sequence[Element], size: tuple[int, int]) -> bool:
    """True if it lies on the screen and a click anywhere on it, also near its corners, meets it."""
    x0, y0, x1, y1 = element.box
    if not (0 <= x0 <= x1 - LEAST_PX and 0 <= y0 <= y1 - LEAST_PX and x1 <= size[0] and y1 <= size[1]):
        return False
    columns, rows = (x0 + 1, (x0 + x1) // 2, x1 - 2), (y0 + 1, (y0 + y1) // 2, y1 - 2)
    return all(element_at(elements, (x, y)) == element for x in columns for y in rows)


def _reach(env: Any, seed: int, rng: np.random.Generator, max_actions: int) -> Observation:
    """Play a few of the oracle's actions, then a few clicks, which it would not know what to do after.

    Of a task that has no oracle, clicks only.

    Returns:
        What is shown then, or when the episode has ended.
    """
    shown: Observation = env.reset({}, seed)
    num_actions = int(rng.integers(max_actions + 1))
    num_right = int(rng.integers(num_actions + 1)) if callable(env.oracle) else 0
    for number in range(num_actions):
        try:
            action = env.oracle() if number < num_right else env.random_action(rng)
        except NoOracle:
            action, num_right = env.random_action(rng), 0
        result = env.step(action)
        shown = result.observation
        if result.terminated or result.truncated:
            break
    return shown


def _chosen(
    named: Sequence[tuple[Element, bool]], size: tuple[int, int], rng: np.random.Generator
) -> tuple[Element, bool]:
    """One of the widgets nearest to a place anywhere: what stands in a corner of every screen is rare."""
    x, y = rng.random(2) * size

    def away(each: tuple[Element, bool]) -> float:
        x0, y0, x1, y1 = each[0].box
        return math.hypot((x0 + x1) / 2 - x, (y0 + y1) / 2 - y)

    near = sorted(named, key=away)[:NEAREST]
    return near[int(rng.integers(len(near)))]


def _row(
    env: GuiEnv,
    codec: Codec,
    shown: Observation,
    named: Sequence[tuple[Element, bool]],
    rng: np.random.Generator,
) -> dict[str, Any]:
    element, by_name = _chosen(named, env.backend.size, rng)
    phrases = (*BY_NAME, *BY_ROLE) if by_name else BY_ROLE
    words = phrases[int(rng.integers(len(phrases)))].format(
        name=element.name.strip(), role=ROLES[element.role]
    )
    x0, y0, x1, y1 = element.box
    width, height = env.rules.shown_size or env.backend.size
    return {
        "messages": [
            text_message("system", codec.instructions((width, height), env.backend.form)),
            message_of(Observation(words, shown.images)),
        ],
        "answer": {"action": "click", "bbox": [x0, y0, x1, y1]},
        "target": codec.format(Click(((x0 + x1) // 2, (y0 + y1) // 2)), env.view),
        "metadata": {
            "codec": codec.name,
            "widget_role": element.role,
            "widget_name": element.name,
            "form": env.backend.form,
        },
    }
