"""Painters of controls in the forms of a family's Shape; each is called as its widget's `paint` is."""

from __future__ import annotations

from vlrl.envs.gui.emu.drawing.family import Shape
from vlrl.envs.gui.emu.drawing.icons import icon as icon_painter
from vlrl.envs.gui.emu.drawing.look import Look
from vlrl.envs.gui.emu.drawing.rasters import dot, fill, plate
from vlrl.envs.gui.emu.drawing.theme import TONES, Colour, mix
from vlrl.envs.gui.emu.state import Box
from vlrl.envs.gui.emu.widgets.base import Item, View, inner
from vlrl.envs.gui.emu.widgets.basic import Button, surface
from vlrl.envs.gui.emu.widgets.controls import Check, Choice, Progress, Slider, Tab
from vlrl.envs.gui.emu.widgets.entry import Entry

WHITE = (255, 255, 255)


def shape_of(look: Look) -> Shape:
    """The forms of the look's family, which has some."""
    assert look.family.shape is not None
    return look.family.shape


def disc(items: list[Item], at: tuple[int, int], side: int, clip: Box, colour: Colour) -> None:
    """A filled circle in a square of this side, which is even, and whose middle is given."""
    left, top = at[0] - side // 2, at[1] - side // 2
    items.append((left, top, left + side, top + side, clip, dot, (colour,)))


def text(
    items: list[Item],
    box: Box,
    clip: Box,
    words: str,
    look: Look,
    ink: Colour,
    behind: Colour,
    align: str = "left",
) -> None:
    """A line of text on one colour."""
    items.append((*box, clip, plate, (behind, behind, None, 0, words, look.font, ink, align)))


def ringed(
    items: list[Item], box: Box, clip: Box, view: View, radius: int, is_focused: bool
) -> tuple[Box, Colour]:
    """Draw a ring around what has the focus; gives the box within it, and the colour behind that."""
    if not is_focused:
        return box, surface(view)
    accent = view.look.palette.accent
    items.append((*box, clip, plate, (surface(view), accent, None, radius)))
    return inner(box, view.look.scaled(shape_of(view.look).ring)), accent


def button(widget: Button, items: list[Item], box: Box, clip: Box, view: View) -> None:
    """A plate of the family's kind, the icon, the text."""
    look, colours, shape = view.look, view.look.palette, shape_of(view.look)
    is_flat = widget.kind in ("tool", "flat") and not widget.tone
    inside, ink = colours.button, colours.text
    if widget.tone:
        inside, ink = TONES[widget.tone]
    elif widget.kind == "primary":
        inside, ink = colours.accent, colours.accent_text
    elif widget.pressed:
        inside = mix(colours.selected, colours.text, 6)
    elif is_flat:
        inside = surface(view)
    border = None if is_flat or shape.button == "filled" else mix(inside, (0, 0, 0), 14)
    ink = ink if widget.enabled else mix(ink, inside, 55)
    radius = look.scaled(shape.radius)
    is_focused = view.has_keys(widget.id)
    plate_box, behind = ringed(items, box, clip, view, radius, is_focused)
    name = "" if widget.icon else widget.name
    items.append((*plate_box, clip, plate, (behind, inside, border, radius, name, look.font, ink)))
    if border is not None:
        x0, _, x1, y1 = plate_box
        foot = (x0 + radius, y1 - 1, x1 - radius, y1)
        items.append((*foot, clip, fill, (mix(inside, (0, 0, 0), 30),)))
    if widget.icon:
        side = min(look.line, box[3] - box[1] - 2, box[2] - box[0] - 2)
        left = box[0] + look.unit if widget.show_name else (box[0] + box[2] - side) // 2
        top = (box[1] + box[3] - side) // 2
        items.append((left, top, left + side, top + side, clip, icon_painter, (widget.icon, ink, inside)))
        if widget.show_name:
            words = (left + side + look.unit, box[1] + 3, box[2] - 3, box[3] - 3)
            text(items, words, clip, widget.name, look, ink, inside)


def _label(widget: Check, items: list[Item], box: Box, clip: Box, view: View, left: int) -> None:
    look, colours, behind = view.look, view.look.palette, surface(view)
    ink = colours.text if widget.enabled else colours.muted
    text(items, (left, box[1] + 1, box[2], box[3] - 1), clip, widget.name, look, ink, behind)
    if view.has_keys(widget.id):
        under = (left, box[3] - 2, min(box[2], left + look.width(widget.name)), box[3] - 1)
        items.append((*under, clip, fill, (colours.accent,)))


def check(widget: Check, items: list[Item], box: Box, clip: Box, view: View) -> None:
    """A box with a mark, and the text."""
    look, colours, behind = view.look, view.look.palette, surface(view)
    side = look.line - 3
    left, top = box[0] + 1, (box[1] + box[3] - side) // 2
    inside = colours.accent if widget.checked else colours.field
    border = colours.accent if widget.checked else mix(colours.border, colours.text, 35)
    values = (behind, inside, border, look.scaled(shape_of(look).check_radius))
    items.append((left, top, left + side, top + side, clip, plate, values))
    if widget.checked:
        mark = inner((left, top, left + side, top + side), max(2, side // 6))
        items.append((*mark, clip, icon_painter, ("tick", colours.accent_text, inside)))
    _label(widget, items, box, clip, view, left + side + look.unit)


def radio(widget: Check, items: list[Item], box: Box, clip: Box, view: View) -> None:
    """A circle with a dot, and the text."""
    look, colours = view.look, view.look.palette
    side = (look.line - 3) // 2 * 2
    at = box[0] + 1 + side // 2, (box[1] + box[3]) // 2
    edge = colours.accent if widget.checked else mix(colours.border, colours.text, 35)
    disc(items, at, side, clip, edge)
    if widget.checked:
        disc(items, at, max(4, side * 2 // 5 // 2 * 2), clip, colours.accent_text)
    else:
        disc(items, at, side - 2, clip, colours.field)
    _label(widget, items, box, clip, view, box[0] + 1 + side + look.unit)


def switch(widget: Check, items: list[Item], box: Box, clip: Box, view: View) -> None:
    """A track with a knob at its right where it is on, and the text."""
    look, colours, behind = view.look, view.look.palette, surface(view)
    high = (look.line - 2) // 2 * 2
    wide, middle, left = 2 * high - 2, (box[1] + box[3]) // 2, box[0] + 1
    track = (left, middle - high // 2, left + wide, middle + high // 2)
    off = mix(colours.window, colours.text, 22)
    is_dotted, is_on = shape_of(look).knob == "dotted", widget.checked
    inside = colours.accent if is_on else behind if is_dotted else off
    border = mix(colours.border, colours.text, 50) if is_dotted and not is_on else None
    items.append((*track, clip, plate, (behind, inside, border, high // 2)))
    knob = high - (6 if is_dotted else 4)
    ink = (colours.accent_text if is_on else mix(colours.text, behind, 30)) if is_dotted else WHITE
    x = track[2] - high // 2 if is_on else track[0] + high // 2
    disc(items, (x, middle), knob // 2 * 2, clip, ink)
    _label(widget, items, box, clip, view, left + wide + look.unit)


def slider(widget: Slider, items: list[Item], box: Box, clip: Box, view: View) -> None:
    """The groove, what of it is filled, the knob."""
    look, colours, behind, shape = view.look, view.look.palette, surface(view), shape_of(view.look)
    middle, side = (box[1] + box[3]) // 2, look.line // 2 * 2
    at, thick = widget.place_of(widget.number, box, look), look.scaled(shape.groove)
    items.append((*box, clip, fill, (behind,)))
    top = middle - thick // 2
    groove = mix(colours.window, colours.text, 24)
    items.append((box[0] + 2, top, box[2] - 2, top + thick, clip, plate, (behind, groove, None, thick // 2)))
    filled = (behind, colours.accent, None, thick // 2)
    items.append((box[0] + 2, top, at, top + thick, clip, plate, filled))
    if view.has_keys(widget.id):
        disc(items, (at, middle), side, clip, mix(behind, colours.accent, 45))
    knob = colours.button if shape.knob == "dotted" else WHITE
    edge = mix(colours.border, colours.text, 25)
    disc(items, (at, middle), side - 2, clip, edge)
    disc(items, (at, middle), side - 4, clip, knob)
    if shape.knob == "dotted":
        disc(items, (at, middle), side // 4 * 2, clip, colours.accent)


def progress(widget: Progress, items: list[Item], box: Box, clip: Box, view: View) -> None:
    """A groove in the middle, and what of it is filled."""
    look, colours, behind = view.look, view.look.palette, surface(view)
    thick = look.scaled(shape_of(look).groove)
    top = (box[1] + box[3] - thick) // 2
    groove = mix(colours.window, colours.text, 20)
    items.append((box[0], top, box[2], top + thick, clip, plate, (behind, groove, None, thick // 2)))
    at = box[0] + (box[2] - box[0]) * widget.number // 100
    if widget.number:
        values = (behind, colours.accent, None, thick // 2)
        items.append((box[0], top, at, top + thick, clip, plate, values))


def choice(widget: Choice, items: list[Item], box: Box, clip: Box, view: View) -> None:
    """A plate as a button has, the chosen text, and the family's arrow."""
    look, colours, shape = view.look, view.look.palette, shape_of(view.look)
    radius, inside = look.scaled(shape.radius), colours.button
    border = None if shape.button == "filled" else mix(inside, (0, 0, 0), 16)
    plate_box, behind = ringed(items, box, clip, view, radius, view.has_keys(widget.id))
    items.append((*plate_box, clip, plate, (behind, inside, border, radius)))
    side = look.line - 2
    left, top = box[2] - side - 4, (box[1] + box[3] - side) // 2
    words = (box[0] + look.unit, box[1] + 3, left - 2, box[3] - 3)
    text(items, words, clip, widget.value, look, colours.text, inside)
    ink, under = colours.muted, inside
    if shape.arrow == "updown":
        ink, under = colours.accent_text, colours.accent
        values = (inside, under, None, look.scaled(4))
        items.append((left, top, left + side, top + side, clip, plate, values))
    mark = inner((left, top, left + side, top + side), 2)
    items.append((*mark, clip, icon_painter, (shape.arrow, ink, under)))


def tab(widget: Tab, items: list[Item], box: Box, clip: Box, view: View) -> None:
    """The text: underlined, on a raised segment, or on a tint if it is the chosen one."""
    look, colours, behind, kind = view.look, view.look.palette, surface(view), shape_of(view.look).tab
    ink = colours.text if widget.chosen or view.has_keys(widget.id) else colours.muted
    if kind == "segment":
        behind = mix(behind, colours.text, 9)
        items.append((*box, clip, fill, (behind,)))
    inside = behind
    if widget.chosen and kind != "underlined":
        inside = colours.button if kind == "segment" else mix(behind, colours.text, 12)
    values = (behind, inside, None, look.scaled(5), widget.name, look.font, ink)
    items.append((*inner(box, 2), clip, plate, values))
    if kind == "underlined" and widget.chosen:
        half, middle = look.scaled(9), (box[0] + box[2]) // 2
        under = (middle - half, box[3] - look.scaled(3), middle + half, box[3])
        items.append((*under, clip, plate, (behind, colours.accent, None, 1)))
    if view.has_keys(widget.id):
        items.append((box[0] + 3, box[3] - 1, box[2] - 3, box[3], clip, fill, (colours.accent,)))


def entry(widget: Entry, items: list[Item], box: Box, clip: Box, view: View) -> None:
    """The paper, underlined or with a ring where one types, and the text."""
    look, colours, shape = view.look, view.look.palette, shape_of(view.look)
    radius = look.scaled(shape.radius) if widget.lines == 1 else 0
    is_focused = view.has_keys(widget.id)
    paper, behind = ringed(items, box, clip, view, radius, is_focused and shape.field == "ringed")
    values = (behind, colours.field, None if behind == colours.accent else colours.border, radius)
    items.append((*paper, clip, plate, values))
    widget.paint_text(items, box, clip, view)
    if shape.field == "underlined":
        thick = look.scaled(2) if is_focused else 1
        colour = colours.accent if is_focused else mix(colours.border, colours.text, 45)
        foot = (box[0] + radius // 2, box[3] - thick, box[2] - radius // 2, box[3])
        items.append((*foot, clip, fill, (colour,)))
