"""What a task's oracle wants next, in words that hold whatever the desktop looks like: click("save").

An intent looks at the desktop as it is and gives the next action towards it, until it has given its last. It
finds widgets by their ids, scrolls to them, brings their window to the front, opens the menus they are in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from vlrl.envs.gui import actions
from vlrl.envs.gui.actions import Action, Click, Drag, Key, LongPress, Pixel, Swipe, SystemButton, TypeText
from vlrl.envs.gui.emu.oracle import at_pages
from vlrl.envs.gui.emu.oracle.reach import Locator, Stuck, close_menu, is_selected, reach
from vlrl.envs.gui.emu.widgets.controls import Choice, Slider
from vlrl.envs.gui.emu.widgets.entry import Entry
from vlrl.envs.gui.emu.widgets.menus import MenuBar
from vlrl.envs.gui.emu.windows import wm

Intent: TypeAlias = Callable[[Locator], tuple[Action, bool]]
"""What to do next, and whether the intent is then done."""


@dataclass(frozen=True)
class Needing:
    """An intent that not every grammar of actions can say.

    Attributes:
        does: the intent.
        example: on a desktop, an action of the kind that it takes.
        by_hand: the same on a phone.
    """

    does: Intent
    example: Action
    by_hand: Action

    def __call__(self, locator: Locator) -> tuple[Action, bool]:
        """See `Intent`."""
        return self.does(locator)


@dataclass(frozen=True)
class Ending:
    """An intent of whose last action it is known what kind it is, wherever things are.

    Attributes:
        does: the intent.
        kinds: what an agent may end it with.
    """

    does: Intent
    kinds: tuple[type[Action], ...]

    def __call__(self, locator: Locator) -> tuple[Action, bool]:
        """See `Intent`."""
        return self.does(locator)


def may_end(intent: Intent, action: Action) -> bool:
    """Whether an action is of a kind that can be an intent's last; where it would act is not looked at."""
    while isinstance(intent, Needing):
        intent = intent.does
    return not isinstance(intent, Ending) or isinstance(action, intent.kinds)


def next_of(intents: Sequence[Intent], locator: Locator) -> tuple[Action, bool]:
    """What the first of some intents wants next; until the page in front has come, to wait.

    Raises:
        Stuck: if there are none, or what it looks for is not on the screen.
    """
    if at_pages.is_loading(locator):
        return at_pages.A_WHILE, False
    if not intents:
        raise Stuck("the oracle has done all that it wanted to do")
    return intents[0](locator)


CLICKS, TYPED, DRAGS, KEYS = (Click,), (TypeText,), (Drag, Swipe), (Key, SystemButton)
A_DRAG = Drag(((40, 40), (90, 70)))
A_RIGHT_CLICK, A_LONG_PRESS = Click((40, 40), "right"), LongPress((40, 40))


def click(id: str, count: int = 1) -> Intent:
    """Click the widget with this id; a row's is "list.key", a radio button's "group.key"."""

    def intent(locator: Locator) -> tuple[Action, bool]:
        found = reach(locator, id)
        return (Click(found, count=count), True) if isinstance(found, tuple) else (found, False)

    return Ending(intent, CLICKS)


def double_click(id: str) -> Intent:
    """Open a row or an icon; a tap on a phone."""

    def intent(locator: Locator) -> tuple[Action, bool]:
        return click(id, 1 if locator.is_mobile else 2)(locator)

    return Ending(intent, CLICKS)


def context(id: str, item: str) -> Intent:
    """Choose from a widget's context menu."""

    def intent(locator: Locator) -> tuple[Action, bool]:
        popup = locator.world.popup
        if popup is not None and (popup.kind == "context" or popup.source == "more") and locator.offers(item):
            return click(item)(locator)
        if locator.is_mobile and is_selected(locator, id):  # what can be done with it is behind one button
            return click("more")(locator)[0], False
        found = reach(locator, id)
        if not isinstance(found, tuple):
            return found, False
        return (LongPress(found) if locator.is_mobile else Click(found, "right")), False

    return Needing(Ending(intent, CLICKS), A_RIGHT_CLICK, A_LONG_PRESS)


def menu(title: str, item: str) -> Intent:
    """Choose from the menu bar by the ids of the menu and its item, as "file" and "save"."""

    def intent(locator: Locator) -> tuple[Action, bool]:
        if locator.world.popup is not None:
            if locator.offers(item):
                return click(item)(locator)
            if locator.offers(f"menu.{title}"):
                return click(f"menu.{title}")(locator)[0], False
            return close_menu(locator), False
        front = "menu" if not locator.find(f"menu.{title}") and locator.find("menu") else f"menu.{title}"
        return click(front)(locator)[0], False

    return Ending(intent, CLICKS)


def choose(id: str, key: object) -> Intent:
    """Choose by its key from a drop-down list, a list, tabs or radio buttons, whichever it is."""

    def intent(locator: Locator) -> tuple[Action, bool]:
        found = locator.find(id)
        if found is None or not isinstance(found[1].widget, Choice):
            return click(f"{id}.{key}")(locator)
        popup = locator.world.popup
        if popup is not None and popup.kind == "choice" and popup.source == id:
            keys = [option for option, _ in found[1].widget.options]
            return click(str(keys.index(key)))(locator)
        return click(id)(locator)[0], False

    return Ending(intent, CLICKS)


def slide(id: str, number: int) -> Intent:
    """Set a slider."""

    def intent(locator: Locator) -> tuple[Action, bool]:
        found, point = locator.find(id), reach(locator, id)
        if not isinstance(point, tuple):
            return point, False
        assert found is not None
        layer, placed = found
        slider = placed.widget
        if not isinstance(slider, Slider):
            raise Stuck(f"{id!r} is no slider")
        x = slider.place_of(number, placed.box, layer.view.look) + layer.box[0]
        return Click((x, point[1])), True

    return Ending(intent, CLICKS)


def type_into(id: str, text: str) -> Intent:
    """Put a text into a field in the place of what is in it."""

    def intent(locator: Locator) -> tuple[Action, bool]:
        found = locator.find(id)
        if found is not None and isinstance(found[1].widget, Entry):
            layer, entry = found[0], found[1].widget
            if (
                locator.world.popup is not None
                and locator.world.popup.source == id
                and locator.offers("edit.select_all")
            ):
                return click("edit.select_all")(locator)[0], False
            front = wm.front(locator.world)
            has_keys = front is not None and layer.key == front.number and front.interface.focus == id
            if has_keys and locator.world.popup is None:
                first, last = sorted(entry.cursor(layer.view))
                if last - first == len(entry.text):
                    return TypeText(text), True
                if not locator.is_mobile:
                    return Key(("ctrl", "a")), False
                return context(id, "edit.select_all")(locator)[0], False
        return click(id)(locator)[0], False

    return Ending(intent, TYPED)


def write(text: str) -> Intent:
    """Type where the caret is."""
    return Ending(lambda locator: (TypeText(text), True), TYPED)


def key(chord: str) -> Intent:
    """Press a chord, as "ctrl+s"; on a phone, which has no such keys, choose what it does from the menus."""

    def intent(locator: Locator) -> tuple[Action, bool]:
        chosen = _menu_of(locator, chord) if locator.is_mobile else None
        return menu(*chosen)(locator) if chosen else (Key(tuple(chord.split("+"))), True)

    return Ending(intent, (*KEYS, *CLICKS))


def _menu_of(locator: Locator, chord: str) -> tuple[str, str] | None:
    """The ids of the menu and its item that have a chord in the front window."""
    found = locator.find("menubar")
    if found is None or not isinstance(found[1].widget, MenuBar):
        return None
    return next(
        (
            (title.id.removeprefix("menu."), item.id)
            for title in found[1].widget.menus
            for item in title.items
            if item.keys == chord
        ),
        None,
    )


def do(action: Action) -> Intent:
    """Any action as it is."""
    return lambda locator: (action, True)


def answer(text: str) -> Intent:
    """Say the answer."""
    return do(actions.Answer(text))


def finish() -> Intent:
    """Say that it is done."""
    return do(actions.Finish())


def drag(id: str, onto: str) -> Intent:
    """Drag a row onto a row or a widget."""

    def intent(locator: Locator) -> tuple[Action, bool]:
        start, end = reach(locator, id), reach(locator, onto)
        if not isinstance(start, tuple):
            return start, False
        if not isinstance(end, tuple):
            return end, False
        return Drag((start, end)), True

    return Needing(Ending(intent, DRAGS), A_DRAG, A_DRAG)


def stroke(id: str, *points: Pixel) -> Intent:
    """Draw on a canvas, in its own pixels; one point is a click."""

    def intent(locator: Locator) -> tuple[Action, bool]:
        found, reached = locator.find(id), reach(locator, id)
        if not isinstance(reached, tuple):
            return reached, False
        assert found is not None
        layer, placed = found
        left, top = layer.box[0] + placed.box[0], layer.box[1] + placed.box[1]
        path = tuple((left + x, top + y) for x, y in points)
        return (Drag(path) if len(path) > 1 else Click(path[0])), True

    return Needing(intent, A_DRAG, A_DRAG) if len(points) > 1 else intent


def open_app(name: str) -> Intent:
    """Start an app, or bring its window to the front, by the start menu or the home screen."""

    def intent(locator: Locator) -> tuple[Action, bool]:
        world = locator.world
        if locator.is_mobile:
            if wm.front(world) is None:
                return click(f"app:{name}")(locator)
            return SystemButton("home"), False
        if world.popup is not None:
            if world.popup.source == "start":
                return click(f"app:{name}")(locator)
            return close_menu(locator), False
        return click("start")(locator)[0], False

    return Ending(intent, CLICKS)
