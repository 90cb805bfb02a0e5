"""The sandbox of a desktop: two nested ones of bubblewrap, and what to do where there can be none."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import warnings
from contextlib import suppress
from typing import Any, Literal

from vlrl.errors import ConfigError

Sandbox = Literal["require", "warn"]
HOME, RUN, SETTINGS = "/home/user", "/run/desktop", "/srv/desktop"
"""Inside: the user's files; what only the outer box sees; what the apps may read but not write."""

_UID = "1000"
_NOBODY = 61873  # an id that no user of this machine has: root starts no apps as root
_HOME_BYTES, _TMP_BYTES, _DEVICE_BYTES = 1 << 25, 1 << 25, 1 << 26
_PLACES = ("/bin", "/lib", "/lib32", "/lib64", "/sbin")
_SYSTEM_SETTINGS = (
    "/etc/fonts",
    "/etc/alternatives",
    "/etc/ld.so.cache",
    "/etc/X11/app-defaults",
    "/etc/libreoffice",
)
_BUS_PACKAGE_OF = {"dbus-daemon": "dbus-daemon", "/usr/libexec/at-spi2-registryd": "at-spi2-core"}
_PACKAGE_OF = {"Xvfb": "xvfb", "icewm": "icewm", "xkbcomp": "x11-xkb-utils"}


def outer_box() -> list[str]:
    """The command that runs the command after it beside the X server."""
    command = [
        *("bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--uid", _UID, "--gid", _UID),
        *("--hostname", "desktop", "--ro-bind", "/usr", "/usr"),
    ]
    for place in _PLACES:
        link = os.path.islink(place)
        command += ["--symlink", os.readlink(place), place] if link else ["--ro-bind-try", place, place]
    for place in _SYSTEM_SETTINGS:
        command += ["--ro-bind-try", place, place]
    return [
        *(*command, "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"),
        *("--perms", "1777", "--dir", "/tmp/.X11-unix", "--dir", RUN, "--dir", SETTINGS),
        *("--size", str(_HOME_BYTES), "--tmpfs", HOME, "--chdir", "/", "--"),
    ]


def inner_box() -> list[str]:
    """The command, within the outer box, that runs the command after it where apps are to run."""
    return [
        *("bwrap", "--unshare-user", "--unshare-pid", "--die-with-parent", "--new-session"),
        *("--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev"),
        *("--size", str(_DEVICE_BYTES), "--tmpfs", "/dev/shm", "--size", str(_TMP_BYTES), "--tmpfs", "/tmp"),
        *("--ro-bind", "/tmp/.X11-unix", "/tmp/.X11-unix", "--tmpfs", "/run", "--bind", HOME, HOME),
        # These two are half of the machine's memory in size.
        *("--remount-ro", "/dev", "--remount-ro", "/run", "--chdir", HOME, "--"),
    ]


def app_box(filtered: str = "") -> list[str]:
    """The command, within the inner box, that runs an app: it sees no other's processes, and makes no boxes.

    Args:
        filtered: the descriptor that has the filter of its system calls; "" for none.
    """
    return [
        *("bwrap", "--unshare-user", "--disable-userns", "--unshare-pid", "--die-with-parent"),
        *("--bind", "/", "/", "--dev-bind", "/dev", "/dev", "--proc", "/proc"),
        *(("--seccomp", filtered) if filtered else ()),
        "--",
    ]


def as_nobody() -> dict[str, Any]:
    """Options of subprocess.Popen that take root's rights away."""
    return {"user": _NOBODY, "group": _NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}


def remove_plain_files(folder: str, display: int) -> None:
    """Remove what a killed X server without a box leaves behind, and the folder of its desktop."""
    for name in (f"/tmp/.X11-unix/X{display}", f"/tmp/.X{display}-lock"):
        with suppress(OSError):
            os.unlink(name)
    shutil.rmtree(folder, ignore_errors=True)


@functools.cache  # of success alone: what is raised is not kept
def check_programs() -> None:
    """Look for what every desktop needs.

    Raises:
        ConfigError: naming what is missing.
    """
    missing = sorted({package for name, package in _PACKAGE_OF.items() if shutil.which(name) is None})
    if missing:
        raise ConfigError(
            f"gui/x11 needs programs that are not here. Debian: apt-get install {' '.join(missing)}"
        )


def check_bus() -> None:
    """Look for what tells the widgets of apps.

    Raises:
        ConfigError: naming what is missing.
    """
    if missing := sorted(package for name, package in _BUS_PACKAGE_OF.items() if shutil.which(name) is None):
        raise ConfigError(
            "env gui/x11: option widgets=true needs programs that are not here. Debian: apt-get install "
            f"{' '.join(missing)} libatk-adaptor"
        )


class NoBoxError(Exception):
    """The boxes cannot be made here."""


@functools.cache  # of success alone
def try_box() -> None:
    """Make the boxes once, with nothing in them.

    Raises:
        NoBoxError: saying what keeps them from being made.
    """
    if shutil.which("bwrap") is None:
        raise NoBoxError("the program bwrap is missing (Debian: bubblewrap, 0.8 or later)")
    argv = [*outer_box(), *inner_box(), *app_box(), "true"]
    try:
        tried = subprocess.run(argv, capture_output=True, timeout=60, cwd="/", **as_nobody())
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoBoxError(str(error)) from error
    if tried.returncode != 0:
        raise NoBoxError(tried.stderr.decode(errors="replace").strip()[:300])


def is_boxed(sandbox: Sandbox) -> bool:
    """Whether desktops are put in boxes; if they cannot be, `sandbox` says what follows.

    Raises:
        ConfigError: where there can be no box and one is required.
    """
    try:
        try_box()
        return True
    except NoBoxError as error:
        reason = str(error)
    if sandbox == "require":
        raise ConfigError(
            f"gui/x11: no sandbox can be made here: {reason}. Allow user namespaces to bubblewrap; or, where "
            "the model may do anything to this machine, set the option sandbox: warn"
        )
    warnings.warn(
        f"gui/x11 RUNS WITHOUT A SANDBOX ({reason}): what a model does on its desktop, it does to this "
        "machine, with your rights, your files and your network.",
        RuntimeWarning,
        stacklevel=2,
    )
    return False
