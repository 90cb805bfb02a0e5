"""What the window of Photos has: albums, small photos or a large one, what can be done with them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vlrl.envs.gui.emu import files
from vlrl.envs.gui.emu.app import Reader
from vlrl.envs.gui.emu.apps.documents.albums import FAVOURITES, albums_of, paths_in
from vlrl.envs.gui.emu.apps.documents.photo_view import PhotoGrid, PhotoView
from vlrl.envs.gui.emu.apps.documents.scenery import Photo
from vlrl.envs.gui.emu.drawing.icon_shapes import ICONS
from vlrl.envs.gui.emu.strings import add_words, tr
from vlrl.envs.gui.emu.widgets import (
    SEPARATOR,
    Choice,
    Column,
    Label,
    Line,
    MenuBar,
    MenuItem,
    Row,
    Rows,
    Space,
    Widget,
    tool_button,
)

if TYPE_CHECKING:
    from vlrl.envs.gui.emu.apps.documents.photos import Photos

add_words("""
Photos = Fotos = Photos = Fotos
Photo = Foto = Photo = Foto
Photo|kind = Foto = Photo = Foto
All photos = Alle Fotos = Toutes les photos = Todas las fotos
Favourites = Favoriten = Favoris = Favoritos
Favourite = Favorit = Favori = Favorito
Album = Album = Album = Álbum
Albums = Alben = Albums = Álbumes
New album… = Neues Album… = Nouvel album… = Nuevo álbum…
Name of the new album = Name des neuen Albums = Nom du nouvel album = Nombre del nuevo álbum
Add to album = Zum Album hinzufügen = Ajouter à l’album = Añadir al álbum
Take out of the album = Aus dem Album nehmen = Retirer de l’album = Quitar del álbum
Delete album… = Album löschen… = Supprimer l’album… = Eliminar álbum…
Delete the album? = Album löschen? = Supprimer l’album ? = ¿Eliminar el álbum?
Rotate left = Nach links drehen = Pivoter à gauche = Girar a la izquierda
Rotate right = Nach rechts drehen = Pivoter à droite = Girar a la derecha
Previous = Vorheriges = Précédente = Anterior
No photos = Keine Fotos = Aucune photo = Sin fotos
""")
ALL, STARRED = "all", "starred"
HOME = "/Pictures"
ICONS["photo"] = (
    ("white", "box", (2, 3, 22, 21)),
    ("sky", "box", (4, 5, 20, 19)),
    ("yellow", "disc", (15.6, 8.6, 2.2)),
    ("teal", "poly", (4, 19, 4, 15, 9, 9, 14, 15, 16.4, 12.4, 20, 16, 20, 19)),
)
ICONS["rotate_right"] = (
    ("ink", "ring", (12, 13, 8.6, 6.2)),
    ("behind", "poly", (12, 13, 12, 2, 24, 2, 24, 13)),
    ("ink", "poly", (12, 1, 19, 5.6, 12, 10.4)),
)
ICONS["rotate_left"] = (
    ("ink", "ring", (12, 13, 8.6, 6.2)),
    ("behind", "poly", (12, 13, 12, 2, 0, 2, 0, 13)),
    ("ink", "poly", (12, 1, 5, 5.6, 12, 10.4)),
)
ICONS["unmarked"] = (("dark", "disc", (12, 12, 11)), ("white", "disc", (12, 12, 9.4)))
ICONS["marked"] = (
    ("white", "disc", (12, 12, 11)),
    ("ink", "disc", (12, 12, 9.6)),
    ("white", "poly", (6, 12, 7.8, 10.2, 10.6, 13, 16.4, 7, 18.2, 8.8, 10.6, 16.6)),
)


def shown(state: Photos, reader: Reader) -> tuple[tuple[str, Photo], ...]:
    """(path, photo) of those in the album or of all, by name."""
    paths = [path for path in reader.world.files if path.startswith(f"{HOME}/")]
    if state.shelf != ALL:
        name = FAVOURITES if state.shelf == STARRED else state.album
        paths = [path for path in paths_in(albums_of(reader.data), name) if path in reader.world.files]
    found = ((path, reader.read(path)) for path in sorted(paths, key=lambda path: (files.base(path), path)))
    return tuple((path, photo) for path, photo in found if isinstance(photo, Photo))


def build(state: Photos, reader: Reader) -> Widget:
    """Menus; a photo and its tools, or the shelves and small photos."""
    menus, photo = _menus(state, reader), reader.read(state.photo)
    if isinstance(photo, Photo):
        return Column(menus, *_one(state, photo, reader), gap=1)
    shelves, found = _shelves(state, reader), shown(state, reader)
    starred = paths_in(albums_of(reader.data), FAVOURITES)
    items = tuple(item._replace(enabled=True) for item in _photo_items(state, reader))
    grid: Widget = PhotoGrid("photo", tr("Photos"), found, state.marked, starred, items)
    if not found:
        grid = Column(Space(), Label(tr("No photos"), "muted", align="center"), Space(), grow=1)
    count = f"{len(found)} {tr('items')}"
    bar = _selection_bar(state) if state.marked else None
    if reader.is_mobile:
        names = tuple((line.key, line.cells[0]) for line in shelves)
        return Column(menus, bar or Choice("shelf", tr("Albums"), names, state.shelf), grid, gap=1)
    left = Rows("shelf", tr("Albums"), shelves, state.shelf, grow=0, width=118)
    main = Column(bar, grid, gap=1, grow=1)
    return Column(menus, Row(left, main, gap=0, grow=1), Label(count, "small"), gap=0)


def _shelves(state: Photos, reader: Reader) -> list[Line]:
    albums = [album.name for album in albums_of(reader.data) if album.name != FAVOURITES]
    return [
        Line(ALL, (tr("All photos"),), icon="photo"),
        Line(STARRED, (tr("Favourites"),), icon="star"),
        *(Line(f"album:{name}", (name,), icon="folder") for name in albums),
    ]


def _selection_bar(state: Photos) -> Widget:
    """What can be done with the selected photos."""
    return Row(
        tool_button("close", tr("Select none"), "close"),
        Label(f"{len(state.marked)} {tr('selected')}", "bold", grow=1),
        tool_button("favourite", tr("Favourite"), "star"),
        tool_button("new_album", tr("New album…"), "plus"),
        tool_button("delete", tr("Delete"), "trash"),
    )


def _one(state: Photos, photo: Photo, reader: Reader) -> tuple[Widget, ...]:
    """A photo by itself."""
    paths = [path for path, _ in shown(state, reader)]
    at = paths.index(state.photo) + 1 if state.photo in paths else 0
    is_starred = state.photo in paths_in(albums_of(reader.data), FAVOURITES)
    tools = Row(
        tool_button("close", tr("Back"), "back"),
        Space(),
        tool_button("rotate_left", tr("Rotate left"), "rotate_left"),
        tool_button("rotate_right", tr("Rotate right"), "rotate_right"),
        tool_button("favourite", tr("Favourite"), "star", pressed=is_starred),
        tool_button("delete", tr("Delete"), "trash"),
        gap=0,
    )
    foot = Row(
        tool_button("previous", tr("Previous"), "back", enabled=at > 1),
        Label(files.base(state.photo), "bold"),
        Label(photo.taken, "small", grow=1),
        Label(f"{at} / {len(paths)}", "small"),
        tool_button("next", tr("Next"), "next", enabled=0 < at < len(paths)),
        gap=2,
    )
    view = PhotoView("view", files.base(state.photo), photo, _photo_items(state, reader))
    return tools, view, foot


def _photo_items(state: Photos, reader: Reader) -> tuple[MenuItem, ...]:
    """What can be done with photos."""
    some, one = bool(state.targets), len(state.targets) == 1
    names = [album.name for album in albums_of(reader.data) if album.name != FAVOURITES]
    return (
        MenuItem("rotate_left", tr("Rotate left"), "ctrl+shift+r", enabled=some),
        MenuItem("rotate_right", tr("Rotate right"), "ctrl+r", enabled=some),
        MenuItem("favourite", tr("Favourite"), "ctrl+f", enabled=some),
        MenuItem("rename", tr("Rename…"), "f2", enabled=one),
        *(MenuItem(f"add.{name}", f"{tr('Add to album')} “{name}”", enabled=some) for name in names),
        SEPARATOR,
        MenuItem("delete", tr("Delete"), "delete", enabled=some),
    )


def _menus(state: Photos, reader: Reader) -> MenuBar:
    in_album = bool(state.album)
    every = MenuItem("all", tr("Select all"), "ctrl+a", enabled=not state.photo)
    close = MenuItem("window.close", tr("Quit"), "ctrl+q")
    albums = (
        MenuItem("new_album", tr("New album…"), "ctrl+n"),
        MenuItem("take_out", tr("Take out of the album"), enabled=in_album and bool(state.targets)),
        MenuItem("delete_album", tr("Delete album…"), enabled=in_album),
    )
    photo = (*_photo_items(state, reader), SEPARATOR, every, close)
    return MenuBar(("photo", tr("Photo"), photo), ("album", tr("Album"), albums))
