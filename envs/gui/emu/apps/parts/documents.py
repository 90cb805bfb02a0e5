"""Documents: the one file that an app has open; opened, saved under a name, never lost without asking."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, Self, TypeVar

from vlrl.envs.gui.emu import files
from vlrl.envs.gui.emu.app import Reader, System
from vlrl.envs.gui.emu.input.events import Closing, Command, Event, Open, Reply
from vlrl.envs.gui.emu.strings import add_words, tr
from vlrl.envs.gui.emu.widgets import SEPARATOR, MenuItem

add_words("""
Untitled = Unbenannt = Sans titre = Sin título
Save the changes? = Änderungen speichern? = Enregistrer les modifications ? = ¿Guardar los cambios?
""")


@dataclass(frozen=True)
class Document(ABC):
    """The state of an app that has one file open; a subclass adds what it makes of the file.

    Attributes:
        path: of the file; "" if it has none yet.
        saved: the content as it is on the disk.
        after: what is to be done when the changes are saved or given up: "new", "open", "close", or the path
            of a file to open.
        home: of the class: the folder where files without a path are saved.
        suggested: of the class: name (in English) and ending that such a file gets.
    """

    path: str = ""
    saved: Any = None
    after: str = ""
    home = "/Documents"
    suggested = ("Untitled", ".txt")

    @classmethod
    def start(cls, argument: str, reader: Reader) -> Self:
        """Start with a file, or empty if there is no such file or it is of another kind."""
        content = cls.parsed(reader.read(argument)) if argument else None
        return cls() if content is None else cls(argument, content).holding(content)

    @classmethod
    @abstractmethod
    def parsed(cls, stored: Any) -> Any:
        """The content of a file; None if it is of another kind."""

    @property
    @abstractmethod
    def content(self) -> Any:
        """What is worked on, as it is now."""

    @abstractmethod
    def holding(self, content: Any) -> Self:
        """State with another content."""

    def stored(self) -> Any:
        """What is written to the disk."""
        return self.content

    def emptied(self) -> Self:
        """State as it is after "New"."""
        return type(self)()

    @property
    def is_changed(self) -> bool:
        """Whether it is otherwise than on the disk."""
        return bool(self.content != self.saved)


D = TypeVar("D", bound=Document)


def file_menu() -> tuple[str, str, tuple[MenuItem, ...]]:
    """The first menu of the menu bar; `handle` does what it says."""
    items = (
        MenuItem("new", tr("New"), "ctrl+n"),
        MenuItem("open", tr("Open…"), "ctrl+o"),
        MenuItem("save", tr("Save"), "ctrl+s"),
        MenuItem("save_as", tr("Save as…"), "ctrl+shift+s"),
        SEPARATOR,
        MenuItem("window.close", tr("Quit"), "ctrl+q"),
    )
    return "file", tr("File"), items


def title(state: Document) -> str:
    """The file's name, with a dot while it is not saved."""
    name = files.base(state.path) or tr("Untitled")
    return f"{'• ' if state.is_changed else ''}{name}"


def handle(state: D, event: Event, system: System) -> D:
    """Files in and out; nothing is lost without asking."""
    match event:
        case Command("new" | "open" as what):
            return _unless_changed(state, what, system)
        case Command("save"):
            return _save(state, system)
        case Command("save_as"):
            system.choose_file("save", "save", state.path or f"{state.home}/")
        case Open(path):
            return _unless_changed(state, path, system)
        case Closing() if state.is_changed:
            system.keep_open()
            return _unless_changed(state, "close", system)
        case Reply("save", str(path)):
            return _save(replace(state, path=path), system)
        case Reply("open", str(path)):
            return state.start(path, system)
        case Reply("changed", "yes"):
            return _save(state, system)
        case Reply("changed", "no"):
            return _go_on(state, system)  # what is not saved goes when something takes its place
        case Reply():
            return replace(state, after="")
    return state


def _unless_changed(state: D, after: str, system: System) -> D:
    """Do it, or ask first what is to become of the changes."""
    state = replace(state, after=after)
    if not state.is_changed:
        return _go_on(state, system)
    system.message("changed", tr("Save the changes?"), ("yes", "no", "cancel"), "question")
    return state


def _save(state: D, system: System) -> D:
    if not state.path:
        name, ending = state.suggested
        system.choose_file("save", "save", f"{state.home}/{tr(name)}{ending}")
        return state
    if not system.write(state.path, state.stored()):
        return replace(state, after="")
    return _go_on(replace(state, saved=state.content), system)


def _go_on(state: D, system: System) -> D:
    """What was to come after the changes were saved or given up."""
    after, state = state.after, replace(state, after="")
    match after:
        case "new":
            return state.emptied()
        case "open":
            system.choose_file("open", "open", files.parent(state.path) if state.path else state.home)
        case "close":
            system.close()
        case str(path) if path:
            return state.start(path, system)
    return state
