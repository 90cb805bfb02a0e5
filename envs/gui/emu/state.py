"""The whole desktop as one value: nothing in it is ever changed in place, so a snapshot is a reference."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

from vlrl.envs.gui.actions import Answer, Finish, Pixel

Box: TypeAlias = tuple[int, int, int, int]
"""(x0, y0, x1, y1), to before x1 and y1."""


class File(NamedTuple):
    """A file of the virtual disk; a folder where content is None.

    Attributes:
        content: a text, or any other value that is never changed in place (an image of the paint app).
        time_ms: when it was last written, by the virtual clock.
    """

    content: Any
    time_ms: int = 0


Files: TypeAlias = Mapping[str, File]
"""Path such as "/Documents/notes.txt" → file. Treated as immutable: a change makes a new mapping."""


class TextCursor(NamedTuple):
    """Where one types: characters from the start of the text; the selection lies between the two."""

    anchor: int = 0
    caret: int = 0


class Undo(NamedTuple):
    """A text before its last change, and what was before that."""

    id: str
    text: str
    cursor: TextCursor
    before: Undo | None


class Interface(NamedTuple):
    """What the widgets of a window keep by themselves.

    Attributes:
        focus: id of the widget that keys go to; "" for none.
        cursors: text field's id → cursor.
        scroll: scroll area's id → pixels scrolled; −1 − n of a text area shows character n in its middle.
        undo: earlier texts.
    """

    focus: str = ""
    cursors: Mapping[str, TextCursor] = {}
    scroll: Mapping[str, int] = {}
    undo: Undo | None = None


class Window(NamedTuple):
    """A window; of a dialog `parent` is the window it blocks and `reply` the id it answers under.

    Attributes:
        number: unlike any other window's of the episode.
        state: the app's own, a frozen dataclass.
        box: on the screen, frame included; what it returns to when it is maximised no longer.
    """

    number: int
    app: str
    state: Any
    box: Box
    interface: Interface = Interface()
    is_minimized: bool = False
    is_maximized: bool = False
    parent: int = 0
    reply: str = ""


class MenuItem(NamedTuple):
    """A line of a menu.

    Attributes:
        id: of the command; "-" for a separating line.
        keys: the shortcut, as "ctrl+s".
        checked: None without a box to check.
        items: of a submenu.
    """

    id: str
    label: str = ""
    keys: str = ""
    enabled: bool = True
    checked: bool | None = None
    items: tuple[MenuItem, ...] = ()


class Popup(NamedTuple):
    """An open menu or drop-down list.

    Attributes:
        window: its window's number; 0 for the desktop itself.
        source: id of the widget that opened it.
        kind: "menu" and "context" send a Command, "choice" a Change of the source.
        box: of the widget on the screen, or an empty one at the pointer.
        on: what the Command's `on` will be.
        trail: indices of the items under the pointer or the keyboard's mark, one for each open level.
    """

    window: int
    source: str
    kind: str
    items: tuple[MenuItem, ...]
    box: Box
    on: Any = None
    trail: tuple[int, ...] = ()


class Held(NamedTuple):
    """What is dragged with the held button.

    Attributes:
        grip: "press", "text", "thumb", "slider", "move", "resize", "stroke", "row", "band".
        window: number; 0 for the desktop itself.
        id: the widget's.
        start: where the button was pressed.
        data: what the grip needs to know of then.
        path: where the pointer was since: all places of a stroke, both ends of a rubber band.
    """

    grip: str
    window: int
    id: str
    start: Pixel
    data: Any = None
    path: tuple[Pixel, ...] = ()


class Keyboard(NamedTuple):
    """The keyboard on a phone's screen.

    Attributes:
        page: of its keys: "lower", "upper", "symbols", "more".
        pan: pixels by which the window in front is moved up, so that one sees what one types.
    """

    page: str = "lower"
    pan: int = 0


class World(NamedTuple):
    """The whole state of a desktop.

    Attributes:
        size: (width, height) of the screen in pixels.
        windows: the front one last.
        settings: of the system: theme, volume, …
        store: app's name → what it keeps when its windows are closed.
        said: the Answer or Finish that was given.
        next_number: of the next window.
        shade: place of the first notice in the list while that is shown, with the quick settings; None while
            it is not.
        keyboard: on a phone's screen while it is shown, where there is one.
    """

    files: Files
    settings: Mapping[str, Any]
    store: Mapping[str, Any]
    size: tuple[int, int]
    windows: tuple[Window, ...] = ()
    clipboard: str = ""
    time_ms: int = 0
    pointer: Pixel = (0, 0)
    popup: Popup | None = None
    held: Held | None = None
    keys: tuple[str, ...] = ()
    said: Answer | Finish | None = None
    next_number: int = 1
    shade: int | None = None
    keyboard: Keyboard | None = None

    @property
    def is_mobile(self) -> bool:
        """Whether it is a phone: one app at a time, on a touch screen."""
        return bool(self.settings.get("form") == "mobile")

    @property
    def is_shade_open(self) -> bool:
        """Whether the list of notices and the quick settings are shown."""
        return self.shade is not None

    def read(self, path: str) -> Any:
        """A file's content; None if there is no such file."""
        file = self.files.get(path)
        return None if file is None else file.content

    def window(self, number: int) -> Window | None:
        """The window with this number."""
        for window in self.windows:  # written out: it is asked many times a step
            if window.number == number:
                return window
        return None

    def app(self, name: str) -> Any:
        """The state of the app's front window; None if it has none."""
        return next((window.state for window in reversed(self.windows) if window.app == name), None)


def with_window(world: World, window: Window) -> World:
    """The world with this window in the place of the one with its number."""
    windows = tuple(window if old.number == window.number else old for old in world.windows)
    return world._replace(windows=windows)
