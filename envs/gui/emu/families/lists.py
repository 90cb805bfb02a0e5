"""Painters of lists, menus and scroll bars in the forms of a family's Shape."""

from __future__ import annotations

from vlrl.envs.gui.emu.drawing.rasters import fill, plate
from vlrl.envs.gui.emu.drawing.theme import mix
from vlrl.envs.gui.emu.families.controls import shape_of
from vlrl.envs.gui.emu.state import Box
from vlrl.envs.gui.emu.widgets.base import Item, View, cut
from vlrl.envs.gui.emu.widgets.containers import ScrollBar
from vlrl.envs.gui.emu.widgets.rows import RowOf
from vlrl.envs.gui.emu.windows.popups import Menu, MenuLine


def row(widget: RowOf, items: list[Item], box: Box, clip: Box, view: View) -> None:
    """The cells; behind those of a selected row a plate of the family's kind."""
    look, colours, shape = view.look, view.look.palette, shape_of(view.look)
    inside, ink, arrow = colours.field, colours.text, colours.muted
    faint = mix(ink, arrow, 60)
    items.append((*box, clip, fill, (inside,)))
    if widget.is_selected:
        inside = mix(colours.field, colours.text, 9) if shape.row == "bar" else colours.selected
        if shape.row == "accent":
            inside, ink, faint, arrow = colours.accent, *(3 * (colours.accent_text,))
        under = (box[0] + 2, box[1] + 1, box[2] - 2, box[3])
        items.append((*under, clip, plate, (colours.field, inside, None, look.scaled(4))))
        if shape.row == "bar":
            quarter = (box[3] - box[1]) // 4
            mark = (box[0] + 2, box[1] + quarter, box[0] + 2 + look.scaled(3), box[3] - quarter)
            items.append((*mark, clip, plate, (inside, colours.accent, None, 1)))
    ends = cut((box[0], box[1], box[2] - look.scaled(6), box[3]), clip)  # of the plate, which are round
    widget.paint_cells(items, box, ends, view, (inside, ink, faint, arrow))


def menu(widget: Menu, items: list[Item], box: Box, clip: Box, view: View) -> None:
    """The paper, with round corners."""
    look, colours = view.look, view.look.palette
    edge = mix(colours.border, colours.text, 12)
    values = (edge, colours.field, edge, look.scaled(look.family.menu_radius))
    items.append((*box, clip, plate, values))


def menu_line(widget: MenuLine, items: list[Item], box: Box, clip: Box, view: View) -> None:
    """The text; behind that of the marked line a plate."""
    look, colours, shape = view.look, view.look.palette, shape_of(view.look)
    if widget.item.id == "-":
        middle = (box[1] + box[3]) // 2
        line = (box[0] + look.unit, middle, box[2] - look.unit, middle + 1)
        items.append((*line, clip, fill, (mix(colours.field, colours.border, 70),)))
        return
    inside, ink = colours.field, colours.text if widget.enabled else colours.muted
    if widget.is_marked:
        is_accent = shape.menu == "accent"
        inside = colours.accent if is_accent else mix(colours.field, colours.text, 10)
        ink = colours.accent_text if is_accent else colours.text
        items.append((*box, clip, plate, (colours.field, inside, None, look.scaled(4))))
    widget.paint_text(items, box, clip, view, inside, ink)


def scroll_bar(widget: ScrollBar, items: list[Item], box: Box, clip: Box, view: View) -> None:
    """A thin thumb with round ends on the colour of the paper."""
    look, colours = view.look, view.look.palette
    thick = min(look.scaled(shape_of(look).scroll_bar), box[2] - box[0] - 2)
    items.append((*box, clip, fill, (colours.field,)))
    top, bottom = widget.thumb(box)
    left = box[2] - 2 - thick
    values = (colours.field, mix(colours.field, colours.text, 45), None, thick // 2)
    items.append((left, top + 1, left + thick, bottom - 1, clip, plate, values))
