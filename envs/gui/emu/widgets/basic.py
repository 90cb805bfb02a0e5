"""Labels, buttons, boxes to check, sliders, and what else is one thing with one value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from vlrl.envs.gui.emu.drawing.glyphs import HEADINGS, Font, face, nearest_size, text_width
from vlrl.envs.gui.emu.drawing.icons import icon as icon_painter
from vlrl.envs.gui.emu.drawing.look import Look
from vlrl.envs.gui.emu.drawing.rasters import fill, plate
from vlrl.envs.gui.emu.drawing.theme import TONES, Colour, mix
from vlrl.envs.gui.emu.input.events import Change, Command
from vlrl.envs.gui.emu.state import Box, MenuItem
from vlrl.envs.gui.emu.widgets.base import Item, View, Widget, outline

Weight = Literal["", "bold", "muted", "small", "title", "mono"]
Kind = Literal["", "primary", "tool", "flat"]


def surface(view: View) -> Colour:
    """What lies behind widgets in a window."""
    return view.look.palette.window


def focus_ring(items: list[Item], widget: Widget, box: Box, clip: Box, view: View) -> None:
    """A line around what has the focus."""
    if view.has_keys(widget.id):
        outline(items, box, clip, view.look.palette.accent)


@dataclass(slots=True, init=False)
class Label(Widget):
    """A line of text."""

    weight: Weight
    align: str
    role: ClassVar[str] = "text"
    is_solid: ClassVar[bool] = False
    fills_width: ClassVar[bool] = True

    def __init__(
        self,
        text: str,
        weight: Weight = "",
        *,
        id: str = "",
        align: str = "left",
        grow: int = 0,
        width: int = 0,
    ) -> None:
        """Say what it says."""
        Widget.__init__(self, id=id, name=text, grow=grow, width=width)
        self.weight, self.align = weight, align

    def font(self, look: Look) -> Font:
        """Font that the weight asks for."""
        match self.weight:
            case "bold":
                return look.bold
            case "small":
                return look.small
            case "mono":
                return look.mono
            case "title":
                return large(look)
            case _:
                return look.font

    def natural(self, look: Look) -> tuple[int, int]:
        """The text's; no width where it may grow, because then it may be shortened, too."""
        wide = text_width(self.font(look), self.name)
        return (0 if self.grow else wide + 1), face(self.font(look)).height + 2

    def paint(self, items: list[Item], box: Box, clip: Box, view: View) -> None:
        """The text."""
        colours = view.look.palette
        colour = colours.muted if self.weight in ("muted", "small") or not self.enabled else colours.text
        behind = surface(view)
        values = (behind, behind, None, 0, self.name, self.font(view.look), colour, self.align)
        items.append((*box, clip, plate, values))


@dataclass(slots=True, init=False)
class Button(Widget):
    """Sends Command(id) when it is pressed.

    Attributes:
        kind: "primary" stands out, "tool" is small and in a tool bar, "flat" has no frame.
        icon: name of an image in front of the text, or in its place if `name` is not to be shown.
        pressed: of one that stays down; None for one that does not.
        tone: one of theme.TONES fills it, the same under every theme.
    """

    kind: Kind
    icon: str
    pressed: bool | None
    show_name: bool
    tone: str
    role: ClassVar[str] = "button"
    takes_focus: ClassVar[bool] = True

    def __init__(
        self,
        id: str,
        name: str,
        *,
        kind: Kind = "",
        icon: str = "",
        pressed: bool | None = None,
        show_name: bool = True,
        tone: str = "",
        enabled: bool = True,
        grow: int = 0,
        width: int = 0,
        height: int = 0,
        press: Command | Change | None = None,
        menu: tuple[MenuItem, ...] = (),
    ) -> None:
        """Say what it is called and does."""
        Widget.__init__(self, id=id, name=name, grow=grow, width=width, height=height, enabled=enabled)
        self.press, self.menu = press or Command(id), menu
        self.kind, self.icon, self.pressed, self.show_name = kind, icon, pressed, show_name
        self.tone = tone

    @property
    def fills_height(self) -> bool:  # type: ignore[override]
        """Whether it fills the height: in a grid, and where it was told to."""
        return bool(self.grow)

    @property
    def fills_width(self) -> bool:  # type: ignore[override]
        """The same."""
        return bool(self.grow)

    def natural(self, look: Look) -> tuple[int, int]:
        """Its icon's and its text's."""
        side = look.line
        wide = 2 * look.unit + (side if self.icon else 0)
        if self.show_name:
            wide += look.width(self.name) + 2 + (look.unit if self.icon else 0)
            wide = max(wide, 0 if self.kind in ("tool", "flat") else 4 * side)
        return wide, look.row

    def paint(self, items: list[Item], box: Box, clip: Box, view: View) -> None:
        """A plate, the icon, the text."""
        look, colours = view.look, view.look.palette
        behind, inside, border, ink = surface(view), colours.button, colours.border, colours.text
        if self.tone:
            inside, ink = TONES[self.tone]
            border = mix(inside, colours.text, 20)
        elif self.kind == "primary":
            inside, border, ink = colours.accent, colours.accent, colours.accent_text
        elif self.kind in ("tool", "flat"):
            inside, border = (colours.selected, colours.accent) if self.pressed else (behind, behind)
        elif self.pressed:
            inside, border = colours.selected, colours.accent
        if not self.enabled:
            ink = mix(ink, inside, 55)
        x0, y0, x1, y1 = box
        if not self.icon:
            values = (behind, inside, border, colours.round, self.name, look.font, ink)
            items.append((*box, clip, plate, values))
        else:
            items.append((*box, clip, plate, (behind, inside, border, colours.round)))
            side = min(look.line, y1 - y0 - 2, x1 - x0 - 2)
            left = x0 + look.unit if self.show_name else (x0 + x1 - side) // 2
            top = (y0 + y1 - side) // 2
            items.append((left, top, left + side, top + side, clip, icon_painter, (self.icon, ink, inside)))
            if self.show_name:
                text = (inside, inside, None, 0, self.name, look.font, ink, "left")
                items.append((left + side + look.unit, y0 + 2, x1 - 2, y1 - 2, clip, plate, text))
        focus_ring(items, self, box, clip, view)

    def states(self, view: View) -> set[str]:
        """And whether it stays down."""
        return Widget.states(self, view) | ({"selected"} if self.pressed else set())


@dataclass(slots=True, init=False)
class Link(Widget):
    """Underlined text that sends Command(id)."""

    role: ClassVar[str] = "link"
    takes_focus: ClassVar[bool] = True

    def __init__(self, id: str, name: str, *, press: Command | None = None) -> None:
        """Say what it is called and does."""
        Widget.__init__(self, id=id, name=name, press=press or Command(id))

    def natural(self, look: Look) -> tuple[int, int]:
        """The text's."""
        return look.width(self.name) + 1, look.line + 2

    def paint(self, items: list[Item], box: Box, clip: Box, view: View) -> None:
        """The text and the line."""
        look, behind = view.look, surface(view)
        values = (behind, behind, None, 0, self.name, look.font, look.palette.accent, "left")
        items.append((*box, clip, plate, values))
        right = min(box[2], box[0] + look.width(self.name))
        items.append((box[0], box[3] - 2, right, box[3] - 1, clip, fill, (look.palette.accent,)))


@dataclass(slots=True, init=False)
class Image(Widget):
    """An image by its name; see `vlrl.envs.gui.emu.drawing.icons`."""

    icon: str
    side: int
    role: ClassVar[str] = "img"
    is_solid: ClassVar[bool] = False

    def __init__(self, icon: str, name: str = "", *, side: int = 32) -> None:
        """Show an image, `side` pixels of font size 13 wide."""
        Widget.__init__(self, name=name, width=side, height=side)
        self.icon, self.side = icon, side

    def paint(self, items: list[Item], box: Box, clip: Box, view: View) -> None:
        """The image."""
        side = min(self.side * view.look.font.size // 13, box[2] - box[0], box[3] - box[1])
        left, top = (box[0] + box[2] - side) // 2, (box[1] + box[3] - side) // 2
        values = (self.icon, view.look.palette.text, surface(view))
        items.append((left, top, left + side, top + side, clip, icon_painter, values))


@dataclass(slots=True, init=False)
class Divider(Widget):
    """A thin line: across a column, upright in a row."""

    is_solid: ClassVar[bool] = False
    fills_width: ClassVar[bool] = True
    fills_height: ClassVar[bool] = True

    def __init__(self) -> None:
        Widget.__init__(self, width=1, height=1)

    def paint(self, items: list[Item], box: Box, clip: Box, view: View) -> None:
        """The line."""
        items.append((*box, clip, fill, (view.look.palette.border,)))


@dataclass(slots=True, init=False)
class Space(Widget):
    """Empty room that grows."""

    is_solid: ClassVar[bool] = False

    def __init__(self, grow: int = 1) -> None:
        Widget.__init__(self, grow=grow)


def large(look: Look) -> Font:
    """Font for headings."""
    return Font(look.font.family, nearest_size(look.font.size * 1.4, HEADINGS), True)
