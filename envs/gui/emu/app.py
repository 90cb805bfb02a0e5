"""What an app is, and what it may do to the desktop it runs on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from vlrl.envs.gui.emu import files, limits
from vlrl.envs.gui.emu.input.events import Event, Reply
from vlrl.envs.gui.emu.state import Files, TextCursor, Window, World
from vlrl.envs.gui.emu.strings import tr
from vlrl.envs.gui.emu.widgets import View, Widget

ALL_TEXT = 1 << 30
"""A place beyond the end of any text: cursors are kept within theirs."""


class Reader:
    """What an app sees of the desktop around it; `build` and `start` get one.

    Attributes:
        world: everything; apps use the methods.
    """

    def __init__(self, world: World, app: str) -> None:
        self.world, self._app = world, app

    def read(self, path: str) -> Any:
        """A file's content; None if there is no such file."""
        return self.world.read(path)

    def exists(self, path: str) -> bool:
        """Whether there is a file or folder."""
        return path in self.world.files

    def is_folder(self, path: str) -> bool:
        """Whether there is a folder."""
        return files.is_folder(self.world.files, path)

    def list(self, folder: str) -> list[str]:
        """Paths of what is in a folder: folders first, then by name."""
        return files.listing(self.world.files, folder)

    def setting(self, key: str) -> Any:
        """One of the system's; None if it has no such."""
        return self.world.settings.get(key)

    @property
    def data(self) -> Any:
        """What the app keeps when its windows are closed; None before it keeps anything."""
        return self.world.store.get(self._app)

    def data_of(self, app: str) -> Any:
        """What another app keeps."""
        return self.world.store.get(app)

    @property
    def minute(self) -> int:
        """Minutes by the virtual clock; `build` may use it only in an app with `shows_time`."""
        return self.world.time_ms // 60_000

    @property
    def is_mobile(self) -> bool:
        """Whether there is one app at a time, on a touch screen."""
        return self.world.is_mobile


class System(Reader):
    """What an app may do; `handle` gets one. Each call leaves a new `world`.

    What would make the desktop larger than `limits` allow is not done: the user reads why in a dialog, and
    the call returns False.
    """

    def __init__(self, world: World, window: Window) -> None:
        super().__init__(world, window.app)
        self.window = window
        self.pending: list[tuple[int, Event]] = []
        self.to_open: list[tuple[str, str, int, str]] = []
        self.is_closed, self.stays_open = False, False
        self.focused: str | None = None
        self.selection: TextCursor | None = None
        self.is_revealed = False

    def write(self, path: str, content: Any) -> bool:
        """Make or overwrite a file, and the folders it is in."""
        return self._files(files.write(self.world.files, path, content, self.world.time_ms))

    def make_folder(self, path: str) -> bool:
        """Make a folder."""
        return self.write(path, None)

    def delete(self, path: str) -> None:
        """Remove a file, or a folder with all that is in it."""
        self.world = self.world._replace(files=files.delete(self.world.files, path))

    def move(self, path: str, to: str) -> bool:
        """Rename or move a file, or a folder with all that is in it; `to` is its whole new path."""
        return self._files(files.move(self.world.files, path, to))

    def copy(self, path: str, to: str) -> bool:
        """Copy a file, or a folder with all that is in it."""
        return self._files(files.copy(self.world.files, path, to))

    def set(self, key: str, value: Any) -> None:
        """Change a setting of the system; those of `look.LOOK_SETTINGS` show at once."""
        self.world = self.world._replace(settings={**self.world.settings, key: value})

    def keep(self, data: Any) -> bool:
        """Keep something beyond the life of the window."""
        return self.keep_for(self._app, data)

    def keep_for(self, app: str, data: Any) -> bool:
        """Put something among what another app keeps, as a mail that arrives."""
        size = limits.size_of(data)
        if size > limits.STORE_SIZE and size > limits.size_of(self.world.store.get(app)):
            self.refuse(limits.STORE_FULL)
            return False
        self.world = self.world._replace(store={**self.world.store, app: data})
        return True

    def open(self, app: str, argument: str = "") -> None:
        """Start an app on something: a path, or what the app understands."""
        self.to_open.append((app, argument, 0, ""))

    def open_file(self, path: str) -> None:
        """Open a file with the app for its kind."""
        app = app_for(path)
        if app:
            self.open(app, path)

    def message(
        self, id: str, text: str, buttons: tuple[str, ...] = ("ok",), icon: str = "info", title: str = ""
    ) -> None:
        """Ask by a dialog: Reply(id, key of the pressed button); its keys are those of dialogs.BUTTONS."""
        self._dialog("dialog.message", "\x1f".join((text, icon, title, *buttons)), id)

    def refuse(self, words: str) -> None:
        """Say why something is not done: `words` of `limits`."""
        self.message("refused", tr(words), icon="warning")

    def prompt(self, id: str, text: str, value: str = "") -> None:
        """Ask for a line of text: Reply(id, text), or None."""
        self._dialog("dialog.prompt", "\x1f".join((text, value)), id)

    def choose_file(self, id: str, mode: str, path: str = "/Documents") -> None:
        """Ask for a file to "open", or a name to "save" as; `path` is a folder or a file: Reply(id, path)."""
        self._dialog("dialog.file", "\x1f".join((mode, path)), id)

    def close(self) -> None:
        """Close this window without asking."""
        self.is_closed = True

    def keep_open(self) -> None:
        """Keep the window open, in answer to Closing."""
        self.stays_open = True

    def reply(self, value: Any) -> None:
        """Close this dialog and notify the window that opened it."""
        self.is_closed = True
        if not self.window.parent:
            self.keep(value)  # a dialog that a task opened: nobody else would know
        else:
            self.pending.append((self.window.parent, Reply(self.window.reply, value)))

    def focus(self, id: str, select: bool = False) -> None:
        """Send the keys to a widget of this window; with all of its text selected, typing replaces it."""
        self.focused, self.selection = id, TextCursor(0, ALL_TEXT) if select else None

    def reveal(self, id: str, first: int, last: int) -> None:
        """Send the keys to a text area, select some of its characters and scroll to them."""
        self.focused, self.selection, self.is_revealed = id, TextCursor(first, last), True

    def _dialog(self, app: str, argument: str, id: str) -> None:
        self.to_open.append((app, argument, self.window.number, id))

    def _files(self, changed: Files) -> bool:
        refusal = limits.disk_refusal(changed)
        if refusal:
            self.refuse(refusal)
            return False
        self.world = self.world._replace(files=changed)
        return True


@dataclass(frozen=True)
class App:
    """A program.

    Attributes:
        name: in code and in OpenApp, "editor".
        label: what it is called on the screen, in English; translated by `tr`.
        icon: of `icons.ICONS`.
        start: (argument, reader) → its first state, a frozen dataclass.
        build: (state, reader) → widgets.
        handle: (state, event, system) → state.
        title: state → the window's title.
        size: of its window in pixels of font size 13.
        focus: id of the widget that has the keys when its window opens.
        opens: endings of files that it opens, ".txt".
        single: whether a second start only brings its window to the front, with the event Open.
        is_listed: whether the start menu has it.
        forms: what it runs on; elsewhere it is neither listed nor started.
        shows_time: whether `build` depends on the clock.
        tick: (state, reader, view of its window or None) → state, after the clock has gone on; called where
            pages are dense.
        back: state → what a phone's back goes back to within the app; None to put the app away.
    """

    name: str
    label: str
    icon: str
    start: Callable[[str, Reader], Any]
    build: Callable[[Any, Reader], Widget]
    handle: Callable[[Any, Event, System], Any]
    title: Callable[[Any], str] | None = None
    size: tuple[int, int] = (400, 300)
    focus: str = ""
    opens: tuple[str, ...] = ()
    single: bool = True
    is_listed: bool = True
    forms: tuple[str, ...] = ("desktop", "mobile")
    shows_time: bool = False
    tick: Callable[[Any, Reader, View | None], Any] | None = None
    back: Callable[[Any], Any | None] | None = None

    def title_of(self, state: Any) -> str:
        """What stands in the title bar."""
        return self.title(state) if self.title else tr(self.label)


APPS: dict[str, App] = {}
"""Every app by name, in the order of the start menu; an app's module registers it."""


def register(app: App) -> App:
    """Make an app known."""
    APPS[app.name] = app
    return app


def app_for(path: str) -> str:
    """The name of the app that opens files with this ending; "" for none."""
    return next((app.name for app in APPS.values() if path.lower().endswith(app.opens) and app.opens), "")
