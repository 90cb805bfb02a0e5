"""How photos are shown: small ones side by side, and one by itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from vlrl.envs.gui.emu.apps.documents.scenery import Photo, rendered
from vlrl.envs.gui.emu.drawing.icons import emblem
from vlrl.envs.gui.emu.drawing.rasters import fill, plate
from vlrl.envs.gui.emu.drawing.theme import mix
from vlrl.envs.gui.emu.files import base
from vlrl.envs.gui.emu.input.events import Activate, Command
from vlrl.envs.gui.emu.state import Box, MenuItem
from vlrl.envs.gui.emu.widgets.base import Item, View, Widget, cut
from vlrl.envs.gui.emu.widgets.basic import focus_ring
from vlrl.envs.gui.emu.widgets.containers import bar_width, place_bar

DARK = (24, 25, 29)
GOLD = (246, 204, 92)
ON = "\x1f"
"""Between a command and the path of the photo that its menu was opened on."""


@dataclass(slots=True, init=False)
class PhotoGrid(Widget):
    """Small photos in as many columns as there is room for: Activate(id, path) when one is clicked.

    The circle in a corner sends Command("mark", path); the ids of a photo's menu get its path after ON.

    Attributes:
        photos: (path, photo) of each.
        marked: paths of those that are selected.
        starred: paths of the favourites.
    """

    photos: tuple[tuple[str, Photo], ...]
    marked: tuple[str, ...]
    starred: tuple[str, ...]
    role: ClassVar[str] = "grid"
    fills_width: ClassVar[bool] = True
    fills_height: ClassVar[bool] = True

    def __init__(
        self,
        id: str,
        name: str,
        photos: tuple[tuple[str, Photo], ...],
        marked: tuple[str, ...],
        starred: tuple[str, ...],
        menu: tuple[MenuItem, ...],
    ) -> None:
        """Say what is in it."""
        Widget.__init__(self, id=id, name=name, grow=1, width=120, height=90, menu=menu)
        self.photos, self.marked, self.starred = photos, marked, starred

    def place(self, view: View, box: Box, clip: Box) -> None:
        """Row by row; those out of sight can be scrolled to."""
        view.add(self, box, clip)
        look = view.look
        room, gap = box[2] - box[0] - bar_width(look), look.scaled(6)
        columns = max(1, (room - gap) // look.scaled(106))
        wide = (room - gap) // columns
        high = (wide - gap) * 2 // 3 + look.line + gap
        rows = -(-len(self.photos) // columns)
        offset, inside = view.scroll(self.id, box, rows * high + gap), cut(box, clip)
        for index, (path, photo) in enumerate(self.photos):
            row, column = divmod(index, columns)
            left, top = box[0] + gap + column * wide, box[1] + gap + row * high - offset
            tile = Tile(self, path, photo)
            tile.place(view, (left, top, left + wide - gap, top + high - gap), inside)
        place_bar(self.id, view, box, clip)

    def paint(self, items: list[Item], box: Box, clip: Box, view: View) -> None:
        """The paper."""
        items.append((*box, clip, fill, (view.look.palette.field,)))


@dataclass(slots=True, init=False)
class Tile(Widget):
    """A small photo with its name."""

    photo: Photo
    is_marked: bool
    is_starred: bool
    role: ClassVar[str] = "gridcell"
    takes_focus: ClassVar[bool] = True

    def __init__(self, grid: PhotoGrid, path: str, photo: Photo) -> None:
        """Make the tile of a photo."""
        menu = tuple(item._replace(id=f"{item.id}{ON}{path}", keys="") for item in grid.menu)
        Widget.__init__(self, id=f"{grid.id}.{path}", name=base(path), menu=menu)
        self.press, self.photo = Activate(grid.id, path), photo
        self.is_marked, self.is_starred = path in grid.marked, path in grid.starred

    def place(self, view: View, box: Box, clip: Box) -> None:
        """The circle in the corner lies over it."""
        view.add(self, box, clip)
        side, path = view.look.scaled(18), self.id.partition(".")[2]
        at = (box[0] + 2, box[1] + 2, box[0] + 2 + side, box[1] + 2 + side)
        Mark(id=f"mark.{path}", name=self.name, press=Command("mark", path), checked=self.is_marked).place(
            view, at, clip
        )

    def paint(self, items: list[Item], box: Box, clip: Box, view: View) -> None:
        """The photo, smaller where it is selected; a star; the name."""
        look, colours = view.look, view.look.palette
        x0, y0, x1, y1 = box
        foot = y1 - look.line
        inside = mix(colours.field, colours.accent, 30) if self.is_marked else colours.field
        items.append((*box, clip, fill, (inside,)))
        edge = look.scaled(6) if self.is_marked else 0
        at = (x0 + edge, y0 + edge, x1 - edge, foot - edge)
        items.append((*at, clip, rendered, (self.photo, mix(colours.field, colours.text, 12))))
        if self.is_starred:
            side = look.scaled(14)
            star = (at[2] - side - 2, at[3] - side - 2, at[2] - 2, at[3] - 2)
            items.append((*star, clip, emblem, ("star", GOLD)))
        name = (inside, inside, None, 0, self.name, look.small, colours.text)
        items.append((x0, foot, x1, y1, clip, plate, name))
        focus_ring(items, self, box, clip, view)

    def states(self, view: View) -> set[str]:
        """Whether it is selected, and a favourite."""
        found = Widget.states(self, view)
        return found | ({"selected"} if self.is_marked else set())

    @property
    def value(self) -> str:
        """A star for a favourite."""
        return "★" if self.is_starred else ""


@dataclass(slots=True, kw_only=True)
class Mark(Widget):
    """The circle by which a photo is selected."""

    checked: bool = False
    role: ClassVar[str] = "checkbox"

    def paint(self, items: list[Item], box: Box, clip: Box, view: View) -> None:
        """A ring on the photo, or a disc with a tick."""
        image = "marked" if self.checked else "unmarked"
        items.append((*box, clip, emblem, (image, view.look.palette.accent)))

    def states(self, view: View) -> set[str]:
        """Whether the photo is selected."""
        return Widget.states(self, view) | ({"checked"} if self.checked else set())


@dataclass(slots=True, init=False)
class PhotoView(Widget):
    """One photo, as large as there is room."""

    photo: Photo
    role: ClassVar[str] = "img"
    fills_width: ClassVar[bool] = True
    fills_height: ClassVar[bool] = True

    def __init__(self, id: str, name: str, photo: Photo, menu: tuple[MenuItem, ...]) -> None:
        """Say which."""
        Widget.__init__(self, id=id, name=name, grow=1, width=150, height=100, menu=menu)
        self.photo = photo

    def paint(self, items: list[Item], box: Box, clip: Box, view: View) -> None:
        """The photo on a dark ground."""
        items.append((*box, clip, rendered, (self.photo, DARK)))
