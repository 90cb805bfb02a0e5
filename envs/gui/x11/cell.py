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
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from vlrl.env_host.failure import EnvFailure
from vlrl.envs.gui.scratch import scratch_folder
from vlrl.envs.gui.spawner import spawn
from vlrl.envs.gui.x11 import box
from vlrl.envs.gui.x11.processes import end_all, name_of, tree
from vlrl.errors import ResourceError

_MOST_PROCESSES = 256
_MARK = "VLRL_X11_DESKTOP"

# Orders are read a line at a time. Standard output tells the host who ended how, the server's and the window
# manager's deaths first of all; standard error, the number of the display once the server takes connections.
_OUTER = """
exec 3>&1 4>&2 >/dev/null 2>&1
cd {run}
mkfifo -m 600 apps
( Xvfb {display} -screen 0 {width}x{height}x24 -fbdir {run} -displayfd 4 {access} -nolisten tcp -noreset \\
    -r -s 0 -dpi 96 </dev/null 3>&-; echo "Xvfb $?" >&3 ) &
exec 4>&-
( {inner_box} /bin/sh -c {inner} <>apps; echo "launcher $?" >&3 ) &
while read -r order argument; do
  case $order in
    display) DISPLAY=:$argument; export DISPLAY ;;
    manage) ( icewm </dev/null 3>&-; echo "icewm $?" >&3 ) & ;;
  esac
done
"""
# `run NAME COMMAND …` starts an app and says how it ended.
_INNER = """
ulimit -c 0{ulimits}
cd {home}
echo "up 0" >&3
run() {{ name=$1; shift; ( "$@" </dev/null 3>&-; echo "$name $?" >&3 ) & }}
while read -r order; do eval "$order"; done
"""
_VITAL = ("Xvfb", "icewm", "launcher")
_NEWS_S = 0.2


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
        environment: Callable[[str], Mapping[str, str]],
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
        self._lonely: set[str] = set()
        self._unread, self._handles, self._display = b"", list[int](), -1
        self._start(
            size,
            {**environment(self.settings), "HOME": self.home, "PATH": "/usr/bin:/bin", _MARK: self._mark},
        )
        try:
            self._connect(time.monotonic() + limit_s)
        except BaseException:
            self.close()
            raise

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

    def order_to_launch(self, name: str, argv: Sequence[str], lonely: bool = False) -> str:
        """What to write to `launcher` to start an app; `lonely`: it sees no other app's processes."""
        if lonely and self.boxed:
            self._lonely.add(name)
            argv = [*box.lonely_box(), *argv]
        return shlex.join(["run", name, *argv])

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
        """See whether everything runs that has to, and no app was killed.

        Raises:
            EnvFailure: naming what died.
        """
        ended = self.ended()
        if (
            "icewm" in ended and "Xvfb" not in ended
        ):  # it ends for want of a server, and may be heard of first
            self._wait(time.monotonic() + _NEWS_S)
            ended = self.ended()
        for name in _VITAL:
            if name in ended:
                raise EnvFailure("died", f"gui/x11: {name} ended with status {ended[name]}")
        for name, status in ended.items():
            if status > 128 and name not in self._lonely:
                raise EnvFailure("died", f"gui/x11: the app {name} was ended by signal {status - 128}")
        if self._process.poll() is not None:
            raise EnvFailure("died", f"gui/x11: the desktop ended with status {self._process.returncode}")

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
        end_all(self._process, None if self.boxed else f"{_MARK}={self._mark}")
        assert self._process.stdin is not None
        self._process.stdin.close()
        for handle in handles:
            os.close(handle)
        if self._folder:
            self._remove_plain_files()

    @property
    def _mark(self) -> str:
        return self._folder or "boxed"

    def _start(self, size: tuple[int, int], environment: Mapping[str, str]) -> None:
        inner = _INNER.format(home=self.home, ulimits=f"; ulimit -p {_MOST_PROCESSES}" if self.boxed else "")
        outer = _OUTER.format(
            run=self._run,
            width=size[0],
            height=size[1],
            display=":0" if self.boxed else "",
            access="-ac" if self.boxed else "",  # nobody else reaches its socket
            inner_box=shlex.join(box.inner_box()) if self.boxed else "",
            inner=shlex.quote(inner),
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
        try:
            self._apps = os.open(self.path(self.launcher), os.O_WRONLY | os.O_NONBLOCK)
        except OSError as error:
            raise EnvFailure("died", f"gui/x11: the desktop's launcher is gone: {error}") from error
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
        """Until a program has ended; False if none did in time."""
        return bool(select.select([self._status], [], [], max(0.0, deadline - time.monotonic()))[0])

    def _remove_plain_files(self) -> None:
        """What a killed X server without a box leaves behind, and the folder."""
        for name in (f"/tmp/.X11-unix/X{self._display}", f"/tmp/.X{self._display}-lock"):
            with suppress(OSError):
                os.unlink(name)
        assert self._folder is not None
        shutil.rmtree(self._folder, ignore_errors=True)
