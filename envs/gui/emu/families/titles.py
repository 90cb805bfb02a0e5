"""The frames of windows in the forms of a family's TitleShape."""

from __future__ import annotations

from vlrl.envs.gui.emu.drawing.family import TitleShape
from vlrl.envs.gui.emu.drawing.icons import icon as icon_painter
from vlrl.envs.gui.emu.drawing.look import Look
from vlrl.envs.gui.emu.drawing.rasters import fill, plate
from vlrl.envs.gui.emu.drawing.theme import Colour, mix
from vlrl.envs.gui.emu.input.events import Command
from vlrl.envs.gui.emu.state import Box
from vlrl.envs.gui.emu.strings import tr
from vlrl.envs.gui.emu.widgets.base import Item, View, cut
from vlrl.envs.gui.emu.windows.frame import EDGE, Frame, TitleBar, TitleButton

LIGHTS: dict[str, Colour] = {"close": (255, 95, 87), "minimize": (254, 188, 46), "maximize": (40, 200, 64)}
"""Colours of the lights of a window in front; those of the others are grey."""


def title_of(look: Look) -> TitleShape:
    """The form of the family's title bars."""
    assert look.family.title is not None
    return look.family.title


def is_at_left(look: Look) -> bool:
    """Whether a window's buttons are at its left."""
    return (title_of(look).side or look.title_buttons) == "left"


def place_frame(frame: Frame, view: View, box: Box, clip: Box) -> None:
    """The title bar with its buttons, then the content; an app that fills a phone has no such frame."""
    look = view.look
    if look.form == "mobile" and not frame.is_dialog:
        frame.place(view, box, clip)
        return
    view.add(frame, box, clip)
    high = look.title
    bar = (box[0] + 1, box[1] + 1, box[2] - 1, box[1] + high)
    TitleBar(id="window.title", name=frame.name, icon=frame.icon).place(view, bar, clip)
    names = ["close"] if frame.is_dialog else ["minimize", "maximize", "close"]
    if title_of(look).buttons == "lights":
        names = [name for name in LIGHTS if name in names]
    elif is_at_left(look):
        names.reverse()
    for name, at in zip(names, _button_boxes(look, bar, len(names)), strict=True):
        shown = "restore" if name == "maximize" and frame.is_maximized else name
        button = TitleButton(id=f"window.{name}", name=tr(shown.capitalize()), icon=shown)
        button.press = Command(button.id)
        button.place(view, at, clip)
    inside = (box[0] + EDGE - 1, box[1] + high, box[2] - EDGE + 1, box[3] - EDGE + 1)
    frame.content.place(view, inside, cut(inside, clip))


def _button_boxes(look: Look, bar: Box, count: int) -> list[Box]:
    shape = title_of(look)
    wide, gap = look.scaled(shape.width), look.scaled(shape.gap) if shape.gap else 0
    margin = look.scaled(shape.margin) if shape.margin else 0
    high = bar[3] - bar[1] if shape.buttons == "flat" else min(wide, bar[3] - bar[1] - 2)
    wide = wide if shape.buttons == "flat" else high
    length = count * (wide + gap) - gap
    left = bar[0] + margin if is_at_left(look) else bar[2] - margin - length
    top = (bar[1] + bar[3] - high) // 2
    return [(left + i * (wide + gap), top, left + i * (wide + gap) + wide, top + high) for i in range(count)]


def title_colours(view: View) -> tuple[Colour, Colour]:
    """(behind, ink) of a title bar."""
    colours = view.look.palette
    if view.is_active:
        return colours.title, colours.title_text
    return colours.title_off, mix(colours.title_text, colours.title_off, 45)


def title_bar(widget: TitleBar, items: list[Item], box: Box, clip: Box, view: View) -> None:
    """The title, in the middle or beside the app's icon."""
    look, shape = view.look, title_of(view.look)
    inside, ink = title_colours(view)
    items.append((*box, clip, fill, (inside,)))
    kept = look.scaled(3 * (shape.width + shape.gap) + shape.margin + 4)
    middle, side = (box[1] + box[3]) // 2, look.line
    if shape.centred:
        words = (box[0] + kept, box[1] + 2, max(box[0] + kept, box[2] - kept), box[3] - 2)
        values = (inside, inside, None, 0, widget.name, look.bold, ink)
        items.append((*words, clip, plate, values))
        return
    left = box[0] + look.unit + (kept if is_at_left(look) else 2)
    image = (left, middle - side // 2, left + side, middle - side // 2 + side)
    items.append((*image, clip, icon_painter, (widget.icon, ink, inside)))
    right = box[2] - (2 if is_at_left(look) else kept)
    words = (image[2] + look.unit, box[1] + 2, max(image[2] + look.unit, right), box[3] - 2)
    items.append((*words, clip, plate, (inside, inside, None, 0, widget.name, look.font, ink, "left")))


def title_button(widget: TitleButton, items: list[Item], box: Box, clip: Box, view: View) -> None:
    """A mark on the bar, on a disc, or a light."""
    look, kind = view.look, title_of(view.look).buttons
    behind, ink = title_colours(view)
    side = min(box[2] - box[0], box[3] - box[1])
    if kind == "lights":
        name = "maximize" if widget.icon == "restore" else widget.icon
        colour = LIGHTS[name] if view.is_active else mix(behind, ink, 30)
        items.append((*box, clip, plate, (behind, colour, mix(colour, (0, 0, 0), 14), side // 2)))
        return
    inside = behind
    if kind == "discs":
        inside = mix(behind, ink, 11)
        items.append((*box, clip, plate, (behind, inside, None, side // 2)))
    else:
        items.append((*box, clip, fill, (behind,)))
    mark = side * 3 // 5 if kind == "discs" else min(look.line - 3, side)
    left, top = (box[0] + box[2] - mark) // 2, (box[1] + box[3] - mark) // 2
    items.append((left, top, left + mark, top + mark, clip, icon_painter, (widget.icon, ink, inside)))
