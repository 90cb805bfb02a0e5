"""Boxes to check, radio buttons, sliders, drop-down lists, tabs: what shows one of a few values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from vlrl.envs.gui.emu.drawing.look import Look
from vlrl.envs.gui.emu.drawing.rasters import fill, plate
from vlrl.envs.gui.emu.drawing.theme import mix
from vlrl.envs.gui.emu.input.events import Change
from vlrl.envs.gui.emu.state import Box, MenuItem
from vlrl.envs.gui.emu.widgets.base import Item, View, Widget, inner
from vlrl.envs.gui.emu.widgets.basic import Button, Label, Space, focus_ring, surface
from vlrl.envs.gui.emu.widgets.containers import Column, Row


@dataclass(slots=True, init=False)
class Check(Widget):
    """A box to check: Change(id, True or False)."""

    checked: bool
    takes_focus: ClassVar[bool] = True
    role: ClassVar[str] = "checkbox"
    is_round: ClassVar[bool] = False

    def __init__(self, id: str, name: str, checked: bool, *, enabled: bool = True, grow: int = 0) -> None:
        """Say what it is called and whether it is checked."""
        Widget.__init__(self, id=id, name=name, press=Change(id, not checked), enabled=enabled, grow=grow)
        self.checked = checked

    def natural(self, look: Look) -> tuple[int, int]:
        """The box and the text."""
        return look.line + look.unit + look.width(self.name) + 3, look.row

    def paint(self, items: list[Item], box: Box, clip: Box, view: View) -> None:
        """The box, its mark, the text."""
        look, colours, behind = view.look, view.look.palette, surface(view)
        side = look.line - 3
        left, top = box[0] + 1, (box[1] + box[3] - side) // 2
        radius = side // 2 if self.is_round else min(3, colours.round)
        inside = colours.accent if self.checked else colours.field
        border = colours.accent if self.checked else mix(colours.border, colours.text, 35)
        frame = (left, top, left + side, top + side)
        if self.is_round:
            dot = inner(frame, side // 3 if self.checked else 1)
            paper = colours.accent_text if self.checked else colours.field
            items.append((*frame, clip, plate, (behind, border, None, radius)))
            items.append((*dot, clip, plate, (border, paper, None, (dot[2] - dot[0]) // 2)))
        else:
            mark = "✓" if self.checked else ""
            values = (behind, inside, border, radius, mark, look.bold, colours.accent_text)
            items.append((*frame, clip, plate, values))
        ink = colours.text if self.enabled else colours.muted
        text = (behind, behind, None, 0, self.name, look.font, ink, "left")
        items.append((left + side + look.unit, box[1] + 1, box[2], box[3] - 1, clip, plate, text))
        focus_ring(items, self, box, clip, view)

    def states(self, view: View) -> set[str]:
        """And whether it is checked."""
        return Widget.states(self, view) | ({"checked"} if self.checked else set())


@dataclass(slots=True, init=False)
class Radio(Check):
    """One of several, of which one is chosen: Change(group, key)."""

    role: ClassVar[str] = "radio"
    is_round: ClassVar[bool] = True

    def __init__(self, group: str, key: Any, name: str, chosen: Any, *, enabled: bool = True) -> None:
        """Say which of the group it is, and which is chosen."""
        Check.__init__(self, f"{group}.{key}", name, key == chosen, enabled=enabled)
        self.press = Change(group, key)


@dataclass(slots=True, init=False)
class Switch(Check):
    """Something that is on or off at once: a box to check, or what a family draws in its place."""

    def natural(self, look: Look) -> tuple[int, int]:
        """The box and the text; a family's switch is twice as wide."""
        wide, high = Check.natural(self, look)
        return wide + (look.line if look.family.shape else 0), high


@dataclass(slots=True, init=False)
class Slider(Widget):
    """A number between two others, that is dragged: Change(id, number)."""

    number: int
    least: int
    most: int
    step: int
    role: ClassVar[str] = "slider"
    takes_focus: ClassVar[bool] = True
    fills_width: ClassVar[bool] = True

    def __init__(
        self,
        id: str,
        name: str,
        number: int,
        least: int = 0,
        most: int = 100,
        *,
        step: int = 1,
        grow: int = 1,
    ) -> None:
        """Say what it is called, and its number and limits."""
        Widget.__init__(self, id=id, name=name, grow=grow, width=110)
        self.number, self.least, self.most, self.step = number, least, most, step

    def natural(self, look: Look) -> tuple[int, int]:
        """A row high."""
        return 0, look.row

    def track(self, box: Box, knob: int) -> tuple[int, int]:
        """(first, last) place of the knob's middle."""
        return box[0] + knob // 2 + 1, box[2] - knob // 2 - 2

    def at(self, x: int, box: Box, look: Look) -> int:
        """The number under a place."""
        first, last = self.track(box, look.line)
        steps = (self.most - self.least) // self.step
        nearest = (2 * (x - first) * steps + (last - first)) // (2 * max(1, last - first))
        return self.least + self.step * min(max(0, nearest), steps)

    def place_of(self, number: int, box: Box, look: Look) -> int:
        """Where the knob's middle is for a number."""
        first, last = self.track(box, look.line)
        return first + (last - first) * (number - self.least) // max(1, self.most - self.least)

    def paint(self, items: list[Item], box: Box, clip: Box, view: View) -> None:
        """The track, what of it is filled, the knob."""
        look, colours, behind = view.look, view.look.palette, surface(view)
        middle, knob = (box[1] + box[3]) // 2, look.line // 2 * 2
        at = self.place_of(self.number, box, look)
        items.append((box[0], box[1], box[2], box[3], clip, fill, (behind,)))
        groove = mix(colours.border, colours.text, 15)
        items.append((box[0] + 2, middle - 2, box[2] - 2, middle + 2, clip, plate, (behind, groove, None, 1)))
        items.append((box[0] + 2, middle - 2, at, middle + 2, clip, plate, (behind, colours.accent, None, 1)))
        dot = (at - knob // 2, middle - knob // 2, at + knob // 2, middle + knob // 2)
        items.append((*dot, clip, plate, (behind, colours.accent, colours.accent, knob // 2 - 1)))
        focus_ring(items, self, box, clip, view)

    @property
    def value(self) -> str:
        """The number."""
        return str(self.number)


@dataclass(slots=True, init=False)
class Progress(Widget):
    """How much of something is done, 0 to 100."""

    number: int
    role: ClassVar[str] = "progressbar"
    fills_width: ClassVar[bool] = True
    is_solid: ClassVar[bool] = False

    def __init__(self, name: str, number: int, *, id: str = "") -> None:
        """Say of what, and how much."""
        Widget.__init__(self, id=id, name=name, width=80, height=12)
        self.number = number

    def paint(self, items: list[Item], box: Box, clip: Box, view: View) -> None:
        """The groove and what of it is filled."""
        colours, behind = view.look.palette, surface(view)
        radius = min(3, colours.round)
        items.append((*box, clip, plate, (behind, colours.field, colours.border, radius)))
        at = box[0] + (box[2] - box[0]) * self.number // 100
        if self.number:
            items.append((box[0], box[1], at, box[3], clip, plate, (behind, colours.accent, None, radius)))

    @property
    def value(self) -> str:
        """The number."""
        return str(self.number)


@dataclass(slots=True, init=False)
class Choice(Widget):
    """A drop-down list: Change(id, key of the chosen option).

    Attributes:
        options: (key, text) of each.
        chosen: a key.
    """

    options: tuple[tuple[Any, str], ...]
    chosen: Any
    role: ClassVar[str] = "combobox"
    takes_focus: ClassVar[bool] = True
    fills_width: ClassVar[bool] = True

    def __init__(
        self, id: str, name: str, options: tuple[tuple[Any, str], ...], chosen: Any, *, grow: int = 0
    ) -> None:
        """Say what it is called, what there is to choose, and what is chosen."""
        Widget.__init__(self, id=id, name=name, grow=grow)
        self.options, self.chosen = options, chosen

    def natural(self, look: Look) -> tuple[int, int]:
        """Size as wide as the widest option."""
        widest = max((look.width(text) for _, text in self.options), default=0)
        return widest + 3 * look.unit + look.line, look.row

    def paint(self, items: list[Item], box: Box, clip: Box, view: View) -> None:
        """A field with an arrow."""
        look, colours = view.look, view.look.palette
        values = (surface(view), colours.field, colours.border, colours.round)
        items.append((*box, clip, plate, values))
        text = (colours.field, colours.field, None, 0, self.value, look.font, colours.text, "left")
        middle = box[2] - look.line - 2
        items.append((box[0] + look.unit, box[1] + 2, middle, box[3] - 2, clip, plate, text))
        arrow = (colours.field, colours.field, None, 0, "▾", look.font, colours.muted)
        items.append((middle, box[1] + 2, box[2] - 4, box[3] - 2, clip, plate, arrow))
        focus_ring(items, self, box, clip, view)

    @property
    def value(self) -> str:
        """The chosen option's text."""
        return next((text for key, text in self.options if key == self.chosen), "")

    @property
    def items(self) -> tuple[MenuItem, ...]:
        """What the open list shows."""
        return tuple(
            MenuItem(str(index), text, checked=key == self.chosen)
            for index, (key, text) in enumerate(self.options)
        )


@dataclass(slots=True, init=False)
class Tab(Widget):
    """One of a row of tabs: Change(group, key)."""

    chosen: bool
    role: ClassVar[str] = "tab"
    takes_focus: ClassVar[bool] = True

    def __init__(self, group: str, key: Any, name: str, chosen: bool) -> None:
        """Say which it is."""
        Widget.__init__(self, id=f"{group}.{key}", name=name, press=Change(group, key))
        self.chosen = chosen

    def natural(self, look: Look) -> tuple[int, int]:
        """The text's, with room around it."""
        return look.width(self.name) + 4 * look.unit, look.row + 2

    def paint(self, items: list[Item], box: Box, clip: Box, view: View) -> None:
        """The text, underlined if it is the chosen one."""
        look, colours, behind = view.look, view.look.palette, surface(view)
        ink = colours.text if self.chosen else colours.muted
        items.append((*box, clip, plate, (behind, behind, None, 0, self.name, look.font, ink)))
        colour = colours.accent if self.chosen else colours.border
        top = box[3] - (2 if self.chosen else 1)
        items.append((box[0], top, box[2], box[3], clip, fill, (colour,)))
        focus_ring(items, self, box, clip, view)

    def states(self, view: View) -> set[str]:
        """And whether it is the chosen one."""
        return Widget.states(self, view) | ({"selected"} if self.chosen else set())


def tabs(group: str, options: tuple[tuple[Any, str], ...], chosen: Any) -> Row:
    """A row of tabs."""
    return Row(*(Tab(group, key, name, key == chosen) for key, name in options), gap=0)


def spinner(id: str, name: str, number: int, least: int, most: int, *, step: int = 1) -> Row:
    """A number with a button to either side: Change(id, number)."""
    less, more = max(least, number - step), min(most, number + step)
    shown = Label(str(number), id=f"{id}.value", align="center", width=30)
    return Row(
        Button(f"{id}.less", f"{name} −", kind="tool", icon="minus", show_name=False, press=Change(id, less)),
        shown,
        Button(f"{id}.more", f"{name} +", kind="tool", icon="plus", show_name=False, press=Change(id, more)),
        gap=0,
        id=id,
        name=name,
    )


def field_row(name: str, control: Widget, *, width: int = 110) -> Row:
    """A control with its name in front of it."""
    return Row(Label(name, width=width), control, Space() if not control.grow else None, gap=2)


def section(title: str, *children: Widget | None) -> Column:
    """Controls under a heading."""
    return Column(Label(title, "bold"), *children, gap=1)
