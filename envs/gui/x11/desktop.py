"""One desktop: booted, driven, looked at, ended."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from vlrl.environment.host.failure import EnvFailure
from vlrl.envs.gui.actions import Action, Move, OpenApp
from vlrl.envs.gui.screen import Element, PixelBox, Screen
from vlrl.envs.gui.x11.accessibility.dbus import Bus, BusError
from vlrl.envs.gui.x11.accessibility.widgets import widgets
from vlrl.envs.gui.x11.apps import APPS, profiles
from vlrl.envs.gui.x11.framebuffer import Framebuffer
from vlrl.envs.gui.x11.inputs import Inputs
from vlrl.envs.gui.x11.looks import THEMES, environment, settings_files
from vlrl.envs.gui.x11.sandbox.box import Sandbox
from vlrl.envs.gui.x11.sandbox.cell import Broken, Cell
from vlrl.envs.gui.x11.sandbox.files import write_files
from vlrl.envs.gui.x11.sandbox.processes import rest_of
from vlrl.envs.gui.x11.sandbox.shells import AppLimits
from vlrl.envs.gui.x11.settle import settle
from vlrl.envs.gui.x11.wire import Connection, XError
from vlrl.envs.process_tree import tree
from vlrl.envs.syscall_filter import syscall_filter

BOOT_S = 30.0
BUS_S = 5.0
"""How long apps may take to tell their widgets."""
_PROBE_S = 0.005
_TOLD_S = 1.0
"""Within this the desktop says what died, after we have noticed that something did."""
_FROM_A_PAGER, _ABOVE = 2, 0
_NORMAL = 1  # a WM_STATE (ICCCM 4.1.3.1): neither withdrawn nor minimised


@dataclass(frozen=True, slots=True)
class Machine:
    """Settings of a desktop; desktops with equal ones are alike.

    Attributes:
        size: (width, height) in pixels.
        sandbox: what to do where no sandbox can be made: refuse, or warn and go on without.
        settle_s: how long a screen may take to settle after an action.
        apps: of apps.APPS, the optional ones that are on it.
        theme: of looks.THEMES.
        names_widgets: its apps tell their widgets over an accessibility bus.
    """

    size: tuple[int, int] = (1280, 800)
    sandbox: Sandbox = "require"
    settle_s: float = 3.0
    apps: frozenset[str] = frozenset()
    theme: str = "classic"
    names_widgets: bool = False


@dataclass(frozen=True, slots=True)
class Window:
    """A window that the window manager lists.

    Attributes:
        id: X's number of it.
        title: what its app calls it; an app may write anything there.
        app: the second part of WM_CLASS.
        box: of its inside.
    """

    id: int
    title: str
    app: str
    box: PixelBox


class Desktop:
    """A desktop without a task: an empty home, no window."""

    def __init__(self, machine: Machine) -> None:
        """Boot it.

        Raises:
            ConfigError: if programs or the sandbox are missing.
            EnvFailure: if it does not come up.
        """
        self.machine = machine
        self._apps = [name for name, app in APPS.items() if not app.optional or name in machine.apps]
        deadline = time.monotonic() + BOOT_S
        self._cell = cell = Cell(machine.size, machine.sandbox, self._environment, BOOT_S)
        self._connection: Connection | None = None
        self._bus: Bus | None = None
        self._framebuffer: Framebuffer | None = None
        self.home = -1
        try:
            with self.watched():
                self.home = os.open(cell.path(cell.home), os.O_RDONLY | os.O_DIRECTORY)
                self._write_settings()
                self._framebuffer = Framebuffer(cell.framebuffer)
                self._connection = Connection(cell.socket)
                if machine.names_widgets:
                    self._start_bus(deadline)
                self._connection.paint_root(THEMES[machine.theme].background)
                cell.manage()
                self._await_manager(deadline)
                self._workers = self._cell.workers()
                self._inputs = Inputs(self._connection, self.settle)
                self._inputs.perform(Move((machine.size[0] // 2, machine.size[1] // 2)))
            if not self.settle(BOOT_S):
                raise EnvFailure("hung", "gui/x11: the desktop did not come to rest after its start")
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End it; safe to call twice."""
        if self._connection:
            self._connection.close()
            self._connection = None
        if self._bus:
            self._bus.close()
            self._bus = None
        if self._framebuffer:
            self._framebuffer.close()
            self._framebuffer = None
        if self.home >= 0:
            os.close(self.home)
            self.home = -1
        self._cell.close()

    def perform(self, action: Action) -> Screen:
        """Do it and wait until the screen has settled.

        Raises:
            EnvFailure: naming what died.
        """
        with self.watched():
            self._give_focus()
            if isinstance(action, OpenApp):
                self.open(action.name)
            else:
                self._inputs.perform(action)
            settled = self.settle()
            if self._give_focus():
                settled = self.settle()
            return self.look(settled)

    def open(self, name: str, *paths: str) -> None:
        """Bring an app to the front, or start it; with paths, a new one that shows them.

        Args:
            name: of APPS, or its title; nothing happens for another one.
            paths: of files, below the home.
        """
        name = next((key for key in self._apps if name.lower() in (key, APPS[key].title.lower())), "")
        shown = [window for window in self.windows() if name and window.app.lower() == APPS[name].window]
        if shown and not paths:
            self._connected.tell_root(shown[-1].id, "_NET_ACTIVE_WINDOW", _FROM_A_PAGER)
            self._connected.tell_root(shown[-1].id, "_NET_RESTACK_WINDOW", _FROM_A_PAGER, 0, _ABOVE)
            self._connected.sync()
        elif name:
            self._cell.launch(self._order(name, *(f"{self._cell.home}/{path}" for path in paths)))

    def look(self, settled: bool = True) -> Screen:
        """The screen as it is."""
        with self.watched():
            pointer = self._connected.pointer()
        assert self._framebuffer is not None  # it is there as long as the connection
        return Screen(self._framebuffer.read(), pointer, settled)

    def settle(self, budget_s: float | None = None) -> bool:
        """Wait until nothing works; False if the budget, else the machine's, does not suffice."""
        budget_s = self.machine.settle_s if budget_s is None else budget_s
        return settle(lambda: tree(*self._workers), self._workers[0], budget_s)

    def write(self, files: Mapping[str, bytes]) -> None:
        """Put files into the home: path → content; a path that ends in / is a folder."""
        with self.watched():
            write_files(self.home, files)

    def windows(self) -> list[Window]:
        """What the window manager lists, the front one last."""
        connection, found = self._connected, []
        for number in connection.cardinals(connection.root, "_NET_CLIENT_LIST_STACKING"):
            title = connection.property(number, "_NET_WM_NAME") or connection.property(number, "WM_NAME")
            classes = connection.property(number, "WM_CLASS").decode(errors="replace").split("\0")
            box = connection.box(number)
            if box:
                found.append(Window(number, title.decode(errors="replace"), [*classes, ""][1], box))
        return found

    def widgets(self) -> dict[str, list[Element]]:
        """The widgets by their windows' titles; none where apps do not answer, or have no bus."""
        try:
            return widgets(self._bus, self.machine.size) if self._bus else {}
        except BusError:
            return {}

    def processes(self) -> list[int]:
        """Every process of it, as this machine numbers them."""
        return self._cell.processes()

    def check(self) -> None:
        """See whether all that has to run does.

        Raises:
            EnvFailure: naming what died.
        """
        self._cell.check()

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Errors in here on a desktop that dies are reported as its death.

        Raises:
            EnvFailure: naming what died.
        """
        try:
            yield
        except (XError, OSError) as error:
            self._cell.check_for(_TOLD_S)
            server = self._cell.workers()[0]
            if isinstance(error, XError) and not rest_of([server]).is_busy:
                # It has nothing to do and does not answer: another client has it, or had us cut off.
                raise Broken("died", f"gui/x11: the X server, taken by a program on it, {error}") from error
            raise EnvFailure("died", f"gui/x11: the X server {error}") from error
        self._cell.check()

    def _give_focus(self) -> bool:
        """Give the keyboard to the front window where the window manager kept it; whether it did.

        While a window closes as it opens, icewm 3.3.1 at times takes the focus for itself and believes that
        another window has it: then neither a click inside that one nor a pager's message brings it back.
        """
        connection = self._connected
        if any(connection.cardinals(connection.root, "_NET_ACTIVE_WINDOW")):
            return False
        manager = connection.cardinals(connection.root, "_NET_SUPPORTING_WM_CHECK")
        if not manager or not connection.same_client(connection.focus(), manager[0]):
            return False
        shown = [w.id for w in self.windows() if connection.cardinals(w.id, "WM_STATE")[:1] == (_NORMAL,)]
        if shown:
            connection.give_focus(shown[-1])
        return bool(shown)

    @property
    def _connected(self) -> Connection:
        if self._connection is None:
            raise EnvFailure("died", "gui/x11: the desktop was closed")
        return self._connection

    def _order(self, name: str, *paths: str) -> str:
        app = APPS[name]
        return self._cell.order_to_launch(name, (*app.argv, *paths), app.commands, app.limits)

    def _write_settings(self) -> None:
        cell = self._cell
        folder = os.open(cell.path(cell.settings), os.O_RDONLY | os.O_DIRECTORY)
        try:
            theme = THEMES[self.machine.theme]
            bus = self._bus_in(cell.home)
            files = settings_files(theme, self._apps, cell.launcher, cell.settings, self._order, bus)
            write_files(folder, {**files, "filter": syscall_filter() or b""})
            write_files(self.home, profiles(self._apps))
        finally:
            os.close(folder)

    def _environment(self, home: str, settings: str) -> dict[str, str]:
        return environment(settings, self._bus_in(home))

    def _bus_in(self, home: str) -> str:
        return f"{home}/.bus" if self.machine.names_widgets else ""

    def _start_bus(self, deadline: float) -> None:
        """Start the bus that apps tell their widgets on, and wait until it takes connections."""
        config = f"--config-file={self._cell.settings}/bus.conf"
        argv = ("dbus-daemon", "--nofork", "--nopidfile", config)
        self._cell.launch(self._cell.order_to_launch("dbus-daemon", argv, False, AppLimits()))
        while self._bus is None:
            try:
                self._bus = Bus(self._cell.path(self._bus_in(self._cell.home)), BUS_S)
            except BusError as error:
                if time.monotonic() > deadline:
                    raise EnvFailure("hung", f"gui/x11: no accessibility bus: {error}") from error
                self._cell.check()
                time.sleep(_PROBE_S)

    def _await_manager(self, deadline: float) -> None:
        """A window manager is ready when it lists a window that asks for it, not when it says so."""
        connection, probe = self._connected, self._connected.show_window()
        while probe not in connection.cardinals(connection.root, "_NET_CLIENT_LIST"):
            if time.monotonic() > deadline:
                raise EnvFailure("hung", "gui/x11: the window manager did not start in time")
            self._cell.check()
            time.sleep(_PROBE_S)
            connection.hide_window(probe)
            connection.show_window(probe)
        connection.destroy_window(probe)
        connection.sync()
