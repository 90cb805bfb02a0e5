"""Photos: all of them, favourites, albums; one is shown, turned, renamed, deleted."""

from __future__ import annotations

from dataclasses import dataclass, replace

from vlrl.envs.gui.emu import files
from vlrl.envs.gui.emu.app import App, Reader, System, register
from vlrl.envs.gui.emu.apps.documents.albums import (
    FAVOURITES,
    albums_of,
    paths_in,
    renamed,
    with_paths,
    without_paths,
)
from vlrl.envs.gui.emu.apps.documents.photo_view import ON
from vlrl.envs.gui.emu.apps.documents.photos_window import ALL, build, shown
from vlrl.envs.gui.emu.apps.documents.scenery import Photo
from vlrl.envs.gui.emu.apps.parts.trash import free, throw_away
from vlrl.envs.gui.emu.input.events import Activate, Change, Command, Event, KeyPress, Open, Reply
from vlrl.envs.gui.emu.strings import tr

KEYS = {"right": 1, "down": 1, "space": 1, "page_down": 1, "left": -1, "up": -1, "page_up": -1}


@dataclass(frozen=True)
class Photos:
    """What is shown.

    Attributes:
        shelf: ALL, `photos_window.STARRED`, or "album:" and an album's name.
        photo: path of the one that is shown by itself; "" for none.
        marked: paths of those that are selected.
        asked: paths that a dialog is about.
    """

    shelf: str = ALL
    photo: str = ""
    marked: tuple[str, ...] = ()
    asked: tuple[str, ...] = ()

    @property
    def album(self) -> str:
        """Name of the album that is shown; "" for none."""
        return self.shelf.removeprefix("album:") if self.shelf.startswith("album:") else ""

    @property
    def targets(self) -> tuple[str, ...]:
        """Those that a command is for."""
        return (self.photo,) if self.photo else self.marked


def start(argument: str, reader: Reader) -> Photos:
    """Start with all photos, or with one."""
    return Photos(photo=argument if isinstance(reader.read(argument), Photo) else "")


def handle(state: Photos, event: Event, system: System) -> Photos:
    """Look, mark, and do what the menus say."""
    match event:
        case Open(path):
            return start(path, system)
        case Change("shelf"):
            return replace(state, photo="", marked=())
        case Activate("photo", str(path)):
            return replace(state, photo=path, marked=())
        case Command("mark", str(path)):
            others = tuple(one for one in state.marked if one != path)
            return replace(state, marked=others if path in state.marked else (*state.marked, path))
        case KeyPress("escape") | Command("close"):
            return back(state) or state
        case KeyPress(chord) if state.photo and chord in KEYS:
            return _beside(state, KEYS[chord], system)
        case Command("previous" | "next" as way) if state.photo:
            return _beside(state, 1 if way == "next" else -1, system)
        case Command(id):
            id, _, on = id.partition(ON)
            asked = (on,) if on and on not in state.marked else state.targets
            return _command(replace(state, asked=asked), id, system)
        case Reply("rename", str(name)) if name.strip() and "/" not in name and state.asked:
            return _rename(state, name.strip(), system)
        case Reply("album", str(name)) if name.strip():
            system.keep(with_paths(albums_of(system.data), name.strip(), state.asked))
            return replace(state, marked=())
        case Reply("delete_album", "delete"):
            albums = tuple(one for one in albums_of(system.data) if one.name != state.album)
            system.keep(albums)
            return replace(state, shelf=ALL, photo="", marked=())
    return state


def _command(state: Photos, id: str, system: System) -> Photos:
    """A command for the photos that are asked about."""
    albums, paths = albums_of(system.data), state.asked
    match id:
        case "all":
            return replace(state, marked=tuple(path for path, _ in shown(state, system)))
        case "rotate_right" | "rotate_left":
            for path in paths:
                photo = system.read(path)
                turns = (photo.turns + (1 if id == "rotate_right" else 3)) % 4
                system.write(path, photo._replace(turns=turns))
        case "favourite" if paths:
            is_all = set(paths) <= set(paths_in(albums, FAVOURITES))
            system.keep((without_paths if is_all else with_paths)(albums, FAVOURITES, paths))
        case "delete" if paths:
            return _delete(state, system)
        case "rename" if len(paths) == 1:
            system.prompt("rename", tr("New name"), files.base(paths[0]))
        case "new_album":
            system.prompt("album", tr("Name of the new album"), "")
        case "delete_album" if state.album:
            system.message("delete_album", tr("Delete the album?"), ("delete", "cancel"), "question")
        case "take_out" if state.album:
            system.keep(without_paths(albums, state.album, paths))
            return replace(state, photo="", marked=())
        case _ if id.startswith("add."):
            system.keep(with_paths(albums, id.removeprefix("add."), paths))
            return replace(state, marked=())
    return state


def _delete(state: Photos, system: System) -> Photos:
    """Move photos into the trash; the next one is shown, if one was."""
    known = [path for path, _ in shown(state, system)]
    throw_away(state.asked, system)
    left = [path for path in known if path not in state.asked]
    photo = state.photo
    if photo in state.asked:
        at = known.index(photo) if photo in known else 0
        photo = left[min(at, len(left) - 1)] if left else ""
    return replace(state, photo=photo, marked=())


def _rename(state: Photos, name: str, system: System) -> Photos:
    """A photo under another name, with the same ending, in the same folder and albums."""
    old = state.asked[0]
    name = name if name.lower().endswith(".jpg") else f"{name}.jpg"
    if name == files.base(old):
        return state
    new = free(files.join(files.parent(old), name), system)
    if not system.move(old, new):
        return state
    if any(old in album.paths for album in albums_of(system.data)):
        system.keep(renamed(albums_of(system.data), old, new))
    marked = tuple(new if path == old else path for path in state.marked)
    return replace(state, photo=new if state.photo == old else state.photo, marked=marked)


def _beside(state: Photos, step: int, system: System) -> Photos:
    """The next photo of what is shown, or the one before."""
    paths = [path for path, _ in shown(state, system)]
    if state.photo not in paths:
        return state
    at = min(max(0, paths.index(state.photo) + step), len(paths) - 1)
    return replace(state, photo=paths[at])


def title(state: Photos) -> str:
    """The photo's name."""
    return files.base(state.photo) or state.album or tr("Photos")


def back(state: Photos) -> Photos | None:
    """A phone's back: from a photo or a selection to all."""
    if state.photo:
        return replace(state, photo="")
    return replace(state, marked=()) if state.marked else None


PHOTOS = register(
    App(
        "photos",
        "Photos",
        "photo",
        start,
        build,
        handle,
        title=title,
        size=(520, 380),
        opens=(".jpg",),
        back=back,
    )
)
