"""The processes of one desktop, started and ended from outside.

Two boxes of bubblewrap, one in the other. The outer one has the X server and the window manager; the inner
one has the apps, which see no process of the outer one, its files not at all, and of the X server only its
socket. Both have no network, a read-only /usr, files in memory that are forgotten, and a user without rights.
Ending the outer box ends every process, and with the last one all that they wrote is gone.
"""

from __future__ import annotations

import os
import select
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from vlrl.environment.host.failure import EnvFailure
from vlrl.envs.gui.scratch import scratch_folder
from vlrl.envs.gui.spawner import spawn
from vlrl.envs.gui.x11.sandbox import box, guard, shells
from vlrl.envs.gui.x11.sandbox.processes import end_all, name_of
from vlrl.envs.gui.x11.sandbox.shells import AppLimits
from vlrl.envs.process_tree import tree
from vlrl.envs.syscall_filter import syscall_filter
from vlrl.errors import ResourceError

_MARK = "VLRL_X11_DESKTOP"
_VITAL = ("Xvfb", "icewm", "launcher")
_KILLED = (128 + signal.SIGKILL, 128 + signal.SIGTERM)
_NEWS_S = 0.2


class Broken(EnvFailure):
    """A desktop that ended by what was done on it: its agent's failure, if it has one."""


class Cell:
    """An X server, a window manager and apps.

    Attributes:
        boxed: False if there is no sandbox here and the processes are plain ones.
        home, settings: folders as the apps see them.
    """

    def __init__(
        self,
        size: tuple[int, int],
        sandbox: box.Sandbox,
        environment: Callable[[str, str], Mapping[str, str]],
        limit_s: float,
    ) -> None:
        """Start the server and wait until it takes connections.

        Raises:
            ConfigError: if programs or the sandbox are missing.
            ResourceError: if no process can be started.
            EnvFailure: if the server does not come up.
        """
        box.check_programs()
        self.boxed = box.is_boxed(sandbox)
        self._folder = None if self.boxed else str(scratch_folder("x11"))
        self.home, self._run, self.settings = box.HOME, box.RUN, box.SETTINGS
        if self._folder:
            self.home, self._run, self.settings = (f"{self._folder}/{n}" for n in ("home", "run", "settings"))
            for folder in (self.home, self._run, self.settings):
                os.mkdir(folder)
        self._ended: dict[str, int] = {}
        self._commanding: set[str] = set()
        self._condemned = ""
        self._unread, self._handles, self._display = b"", list[int](), -1
        variables = {**environment(self.home, self.settings), "HOME": self.home, "PATH": "/usr/bin:/bin"}
        self._start(size, {**variables, _MARK: self._mark})
        try:
            self._connect(time.monotonic() + limit_s)
        except BaseException:
            self.close()
            raise
        guard.watch(self)

    def path(self, name: str) -> str:
        """Where this process finds what is at an absolute path beside the X server."""
        return f"/proc/{self._inside}/root{name}" if self.boxed else name

    @property
    def socket(self) -> str:
        """The X server's, as this process finds it."""
        return self.path(f"/tmp/.X11-unix/X{self._display}")

    @property
    def framebuffer(self) -> str:
        """The file of the screen's pixels, as this process finds it."""
        return self.path(f"{self._run}/Xvfb_screen0")

    def processes(self) -> list[int]:
        """Every process."""
        return tree(self._process.pid)

    def workers(self) -> tuple[int, int, int]:
        """The X server, the window manager, and the process that starts the apps: the rest only waits.

        Raises:
            EnvFailure: if one of them is missing.
        """
        names = {name_of(pid): pid for pid in self.processes()}
        if "Xvfb" not in names or "icewm" not in names:
            raise EnvFailure("died", "gui/x11: the X server or the window manager is gone")
        return names["Xvfb"], names["icewm"], self._starter

    def manage(self) -> None:
        """Start the window manager."""
        self._order("manage")

    def order_to_launch(self, name: str, argv: Sequence[str], commands: bool, limits: AppLimits) -> str:
        """What to write to `launcher` to start an app; `commands`: it runs any command (`apps.App`)."""
        if commands:
            self._commanding.add(name)
        if self.boxed:
            argv = [*box.app_box(shells.FILTER_FD if self._filters else ""), *argv]
        return shlex.join(["run", name, *(str(mib << 10) for mib in limits), *argv])

    @property
    def filter(self) -> str:
        """The file of the filter of the apps' system calls, as the apps see it."""
        return f"{self.settings}/filter"

    @property
    def launcher(self) -> str:
        """The pipe that takes such orders, as the window manager sees it."""
        return f"{self._run}/apps"

    def launch(self, order: str) -> None:
        """Start an app."""
        try:
            os.write(self._apps, order.encode() + b"\n")
        except OSError as error:
            raise EnvFailure("died", f"the desktop's launcher is gone: {error}") from error

    def ended(self) -> Mapping[str, int]:
        """Programs that have ended, with their last status as a shell gives it: over 128 by a signal."""
        with suppress(BlockingIOError):
            while data := os.read(self._status, 1 << 12):
                self._unread += data
        *lines, self._unread = self._unread.split(b"\n")
        for line in lines:
            name, _, status = line.decode(errors="replace").partition(" ")
            if status.isdigit():
                self._ended[name] = int(status)
        return self._ended

    def check(self) -> None:
        """See whether everything runs that has to, and nobody outside has killed an app.

        Nobody inside can signal the server or the window manager: what ends them otherwise than by being
        killed is a request or a bug that something inside has found. An app that crashes is merely gone.

        Raises:
            EnvFailure: naming what died.
            Broken: if it was what happened on the desktop that ended it.
        """
        ended = self.ended()
        if "icewm" in ended and "Xvfb" not in ended:  # without a server it ends, and may be heard of first
            self._wait(time.monotonic() + _NEWS_S)
            ended = self.ended()
        if self._condemned:
            raise Broken("died", f"gui/x11: the desktop was ended: {self._condemned}")
        for name in _VITAL:
            if name in ended:
                failure = EnvFailure if ended[name] in _KILLED else Broken
                raise failure("died", f"gui/x11: {name} ended with status {ended[name]}")
        for name, status in ended.items():
            if status in _KILLED and name not in self._commanding:
                raise EnvFailure("died", f"gui/x11: the app {name} was ended by signal {status - 128}")
        if self._process.poll() is not None:
            raise EnvFailure("died", f"gui/x11: the desktop ended with status {self._process.returncode}")

    @property
    def root(self) -> int:
        """The process that all others descend from."""
        return self._process.pid

    def condemn(self, reason: str) -> None:
        """End all of it, as it is more than this machine can bear."""
        if self._process.poll() is not None:
            return
        self._condemned = reason
        for pid in tree(self.root)[:0:-1]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def check_for(self, limit_s: float) -> None:
        """The same, giving the news some time to arrive."""
        deadline = time.monotonic() + limit_s
        self.check()
        while self._wait(deadline):
            self.check()

    def close(self) -> None:
        """End every process and forget every file; safe to call twice."""
        handles, self._handles = self._handles, []
        if not handles:
            return
        guard.leave(self)
        end_all(self._process, None if self.boxed else f"{_MARK}={self._mark}")
        assert self._process.stdin is not None
        self._process.stdin.close()
        for handle in handles:
            os.close(handle)
        if self._folder:
            box.remove_plain_files(self._folder, self._display)

    @property
    def _filters(self) -> bool:
        return self.boxed and syscall_filter() is not None

    @property
    def _mark(self) -> str:
        return self._folder or "boxed"

    def _start(self, size: tuple[int, int], environment: Mapping[str, str]) -> None:
        outer = shells.outer_shell(
            shells.inner_shell(self.home, self.filter if self._filters else "", boxed=self.boxed),
            size,
            self._run,
            boxed=self.boxed,
        )
        self._status, status = os.pipe()
        self._ready, ready = os.pipe()
        self._handles = [self._status, self._ready]
        os.set_blocking(self._status, False)
        try:
            self._process = spawn(
                [*(box.outer_box() if self.boxed else ()), "/bin/sh", "-c", outer],
                stdin=subprocess.PIPE,
                stdout=status,
                stderr=ready,
                bufsize=0,
                env=dict(environment),
                start_new_session=True,
                cwd="/",
                **(box.as_nobody() if self.boxed else {}),
            )
        except OSError as error:
            for handle in self._handles:
                os.close(handle)
            raise ResourceError(f"gui/x11: no desktop can be started: {error}") from error
        finally:
            os.close(status)
            os.close(ready)

    def _connect(self, deadline: float) -> None:
        said = b""
        while not said.endswith(b"\n"):
            readable, _, _ = select.select([self._ready], [], [], max(0.0, deadline - time.monotonic()))
            if not readable:
                raise EnvFailure("hung", "gui/x11: the X server did not start in time")
            data = os.read(self._ready, 1 << 12)
            if not data:
                raise EnvFailure("died", f"gui/x11: no X server: {said.decode(errors='replace')}")
            said += data
        if not said.strip().isdigit():
            raise EnvFailure("died", f"gui/x11: no X server: {said.decode(errors='replace').strip()}")
        self._display = int(said)
        self._inside = self.processes()[1] if self.boxed else self._process.pid
        try:  # as both ends of it: its reader, the launcher, may come later than the X server
            self._apps = os.open(self.path(self.launcher), os.O_RDWR | os.O_NONBLOCK)
        except OSError as error:
            raise EnvFailure("died", f"the desktop is gone: {error}") from error
        self._handles.append(self._apps)
        while "up" not in self.ended():
            self.check()
            if not self._wait(deadline):
                raise EnvFailure("hung", "gui/x11: the desktop's launcher did not start in time")
        self._starter = self.processes()[-1]  # the innermost, before there is any app
        self._order(f"display {self._display}")
        self.launch(f"export DISPLAY=:{self._display}")

    def _order(self, line: str) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line.encode() + b"\n")
        except OSError as error:
            raise EnvFailure("died", f"gui/x11: the desktop is gone: {error}") from error

    def _wait(self, deadline: float) -> bool:
        """Wait until a program has ended; False if none did in time."""
        return bool(select.select([self._status], [], [], max(0.0, deadline - time.monotonic()))[0])
