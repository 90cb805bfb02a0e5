"""Files: folders and what is in them; deleted things go to the trash."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from vlrl.envs.gui.emu import files
from vlrl.envs.gui.emu.app import App, Reader, System, register
from vlrl.envs.gui.emu.apps.parts.folders_view import build, shown
from vlrl.envs.gui.emu.apps.parts.trash import TRASH, free, throw_away
from vlrl.envs.gui.emu.input.events import Activate, Change, Command, Drop, Event, Open, Reply
from vlrl.envs.gui.emu.strings import tr


@dataclass(frozen=True)
class Folders:
    """What is shown.

    Attributes:
        folder: whose contents; `unfolded` are those whose folders the tree shows.
        chosen: paths that are selected; on a phone a selection is begun by a finger that is held.
        sort: column, and whether from the last to the first.
        query: part of a name that is searched for in the folder and all that are in it.
        taken: "cut" or "copy", and the paths, until they are pasted.
        asked: path that a dialog is about.
    """

    folder: str = "/Documents"
    unfolded: tuple[str, ...] = ("/",)
    chosen: tuple[str, ...] = ()
    sort: tuple[int, bool] = (0, False)
    query: str = ""
    taken: tuple[str, tuple[str, ...]] = ("", ())
    asked: str = ""


def start(argument: str, reader: Reader) -> Folders:
    """Start at a folder, or at the one that a file is in."""
    if reader.is_folder(argument):
        return Folders(argument)
    if not reader.exists(argument):
        return Folders()
    return Folders(files.parent(argument), chosen=_selected(reader, argument))


def _selected(reader: Reader, *paths: str) -> tuple[str, ...]:
    """What is selected after something was done with it; nothing on a phone, whose taps would go on."""
    return () if reader.is_mobile else paths


def handle(state: Folders, event: Event, system: System) -> Folders:
    """Go about, and do what the menus say."""
    match event:
        case Open(path):
            return start(path, system)
        case Change("tree", path):
            return _at(state, path)
        case Activate("chosen", path):
            return _opened(state, path, system)
        case Activate("tree", path):
            return _at(state, path)
        case Command("tree.toggle", path):
            others = tuple(known for known in state.unfolded if known != path)
            return replace(state, unfolded=others if path in state.unfolded else (*others, path))
        case Command("chosen.sort", int(column)):
            return replace(state, sort=(column, state.sort[0] == column and not state.sort[1]))
        case Drop("tree" | "chosen", str(path), str(to)) if system.is_folder(to):
            dragged = state.chosen if path in state.chosen else (path,)
            return _put(state, "cut", dragged, to, system)
        case Command("up"):
            return _at(state, files.parent(state.folder))
        case Command(id):
            return _command(state, id, system)
        case Reply("folder", str(name)) if _is_name(name):
            system.make_folder(free(files.join(state.folder, name.strip()), system))
        case Reply("rename", str(name)) if _is_name(name) and name.strip() != files.base(state.asked):
            to = free(files.join(files.parent(state.asked), name.strip()), system)
            return replace(state, chosen=_selected(system, to)) if system.move(state.asked, to) else state
        case Reply("empty", "yes"):
            for path in system.list(TRASH):
                system.delete(path)
            system.keep(())
    return state


def _command(state: Folders, id: str, system: System) -> Folders:
    first = state.chosen[0] if state.chosen else ""
    match id:
        case "open" if first:
            return _opened(state, first, system)
        case "new_folder":
            system.prompt("folder", tr("Name of the new folder"), tr("New folder"))
        case "rename" if first:
            system.prompt("rename", tr("New name"), files.base(first))
            return replace(state, asked=first)
        case "cut" | "copy" if first:
            return replace(state, taken=(id, state.chosen), chosen=_selected(system, *state.chosen))
        case "select_all":
            return replace(state, chosen=tuple(shown(state, system)))
        case "select_none":
            return replace(state, chosen=())
        case "paste":
            return _put(state, *state.taken, state.folder, system)
        case "delete" if first:
            return _delete(state, system)
        case "restore" if first:
            return _restore(state, system)
        case "empty":
            system.message("empty", tr("Delete all of it for ever?"), ("yes", "no"), "warning")
        case "details" if first:
            system.message("details", _details(first, system), title=tr("Details"))
    return state


def _at(state: Folders, folder: str) -> Folders:
    above = {folder}
    while folder != "/" and files.parent(folder) not in above:
        folder = files.parent(folder)
        above.add(folder)
    unfolded = tuple(sorted({*state.unfolded, *above}))
    return replace(state, folder=max(above, key=len), unfolded=unfolded, chosen=(), query="")


def _opened(state: Folders, path: str, system: System) -> Folders:
    if system.is_folder(path):
        return _at(state, path)
    system.open_file(path)
    return state


def _put(state: Folders, how: str, paths: tuple[str, ...], to: str, system: System) -> Folders:
    """Move or copy into a folder."""
    put = []
    for path in paths:
        if not system.exists(path) or (how == "cut" and files.parent(path) == to):
            continue
        if to == path or to.startswith(path + "/"):
            continue
        target = free(files.join(to, files.base(path)), system)
        if not (system.move if how == "cut" else system.copy)(path, target):
            break
        put.append(target)
    taken = ("", ()) if how == "cut" else state.taken
    return replace(state, taken=taken, chosen=_selected(system, *put) if to == state.folder else ())


def _delete(state: Folders, system: System) -> Folders:
    """Move the chosen files into the trash; those that are already in there are deleted for good."""
    throw_away([path for path in state.chosen if path not in (TRASH, *files.HOME_FOLDERS)], system)
    return replace(state, chosen=())


def _restore(state: Folders, system: System) -> Folders:
    origins: dict[str, str] = dict(system.data or ())
    for path in state.chosen:
        if path in origins:
            system.move(path, free(origins.pop(path), system))
    system.keep(tuple(origins.items()))
    return replace(state, chosen=())


def _details(path: str, system: System) -> str:
    """What the dialog says."""
    lines = [files.base(path), f"{tr('In')}: {files.parent(path)}"]
    content: Any = system.read(path)
    if content is None:
        lines.append(f"{tr('Items')}: {len(system.list(path))}")
    elif isinstance(content, str):
        lines += [f"{tr('Characters')}: {len(content)}", f"{tr('Words')}: {len(content.split())}"]
    return "\n".join(lines)


def _is_name(name: str) -> bool:
    return bool(name.strip()) and "/" not in name


def title(state: Folders) -> str:
    """The folder's name."""
    return files.base(state.folder) or tr("Files")


def back(state: Folders) -> Folders | None:
    """A phone's back leaves a selection."""
    return replace(state, chosen=()) if state.chosen else None


FOLDERS = register(
    App(
        "files",
        "Files",
        "files",
        start,
        build,
        handle,
        title=title,
        size=(450, 320),
        focus="chosen",
        back=back,
    )
)
