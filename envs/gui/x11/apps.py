"""The apps of a desktop."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from vlrl.envs.gui.x11.profiles import BROWSER, MAIL, OFFICE
from vlrl.envs.gui.x11.sandbox.shells import AppLimits


@dataclass(frozen=True, slots=True)
class App:
    """A program of Debian's.

    Attributes:
        title: what people call it.
        argv: what starts it; paths may follow.
        package: Debian's packages of it.
        icon: as the task bar finds it.
        commands: it runs any command that the agent likes, and so may be ended by the agent at any time.
        window: the second part of its windows' WM_CLASS, in lower case.
        limits: of each of its processes.
        profile: files of its own in the home, path → content; their names begin with a dot.
        optional: it is large, and on a desktop only where a task needs it.
    """

    title: str
    argv: tuple[str, ...]
    package: str
    icon: str
    window: str
    commands: bool = False
    limits: AppLimits = field(default_factory=AppLimits)
    profile: Mapping[str, str] = field(default_factory=dict)
    optional: bool = False


_ICONS = "/usr/share/icons/Adwaita/48x48/legacy/{}.png"
CLICKS_MS = 80
"""Clicks that follow each other within this are a double click: of one action, never of two (`inputs`)."""
_CLICKS = ("-xrm", f"*multiClickTime: {CLICKS_MS}")
_SHELL = ("/bin/bash", "--norc", "--noprofile")
_OFFICE = ("soffice", "--norestore", "--nologo", "--nolockcheck")
APPS: Mapping[str, App] = {
    "mousepad": App(
        "Text Editor", ("mousepad",), "mousepad", _ICONS.format("accessories-text-editor"), "mousepad"
    ),
    "pcmanfm": App(
        "Files",
        ("pcmanfm", "--new-win"),
        "pcmanfm",
        _ICONS.format("system-file-manager"),
        "pcmanfm",
        commands=True,
    ),
    "galculator": App("Calculator", ("galculator",), "galculator", "galculator", "galculator"),
    "mtpaint": App("Paint", ("mtpaint",), "mtpaint", "mtpaint", "mtpaint", commands=True),
    "gpicview": App("Image Viewer", ("gpicview",), "gpicview", "gpicview", "gpicview"),
    "xterm": App(
        "Terminal",
        ("xterm", "-fa", "DejaVu Sans Mono", "-fs", "11", *_CLICKS, "-e", *_SHELL),
        "xterm",
        _ICONS.format("utilities-terminal"),
        "xterm",
        commands=True,
    ),
    "firefox-esr": App(
        "Web Browser",
        ("firefox-esr", "--profile", "/home/user/.mozilla/firefox/desktop", "--no-remote"),
        "firefox-esr",
        "/usr/share/icons/hicolor/48x48/apps/firefox-esr.png",
        "firefox-esr",
        limits=AppLimits(1024, 32768),  # it reserves 20 GiB, and uses 0.3
        profile=BROWSER,
        optional=True,
    ),
    "claws-mail": App(
        "Mail",
        ("claws-mail", "--offline"),
        "claws-mail",
        "/usr/share/icons/hicolor/48x48/apps/claws-mail.png",
        "claws-mail",
        commands=True,
        profile=MAIL,
        optional=True,
    ),
    "libreoffice-calc": App(
        "Spreadsheet",
        (*_OFFICE, "--calc"),
        "libreoffice-calc libreoffice-gtk3",
        "/usr/share/icons/hicolor/48x48/apps/libreoffice-calc.png",
        "libreoffice-calc",
        commands=True,
        profile=OFFICE,
        optional=True,
    ),
    "libreoffice-writer": App(
        "Word Processor",
        (*_OFFICE, "--writer"),
        "libreoffice-writer libreoffice-gtk3",
        "/usr/share/icons/hicolor/48x48/apps/libreoffice-writer.png",
        "libreoffice-writer",
        commands=True,
        profile=OFFICE,
        optional=True,
    ),
}


def lacking(names: Iterable[str]) -> list[str]:
    """The apps that are not on this machine."""
    return [name for name in names if shutil.which(APPS[name].argv[0]) is None]


def profiles(names: Iterable[str]) -> dict[str, bytes]:
    """The files in the home that apps begin with: path → content."""
    return {path: text.encode() for name in names for path, text in APPS[name].profile.items()}
