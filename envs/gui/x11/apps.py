"""The apps of a desktop, and the settings that make it the same every time and still when nothing happens."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from vlrl.envs.gui.x11.profiles import BROWSER, OFFICE
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

_SIMILAR_EVERYWHERE = {
    "LANG": "C.UTF-8",
    "TZ": "UTC",
    "PS1": "user@desktop:\\w$ ",
    "HISTFILE": "/dev/null",
    "GSETTINGS_BACKEND": "memory",
    "DBUS_SESSION_BUS_ADDRESS": "disabled:",  # apps neither start a bus nor wait for one
    "NO_AT_BRIDGE": "1",
    "GTK_OVERLAY_SCROLLING": "0",
    "XDG_RUNTIME_DIR": "/tmp",
    "OMP_NUM_THREADS": "1",
    "XDG_CACHE_HOME": "/tmp/.cache",  # a browser's has 20 MiB
    "MESA_SHADER_CACHE_DISABLE": "true",
}
_GTK3 = f"""[Settings]
gtk-enable-animations = false
gtk-cursor-blink = false
gtk-theme-name = Adwaita
gtk-icon-theme-name = Adwaita
gtk-font-name = DejaVu Sans 10
gtk-recent-files-enabled = false
gtk-double-click-time = {CLICKS_MS}
"""
_GTK2 = f"""gtk-cursor-blink = 0
gtk-icon-theme-name = "Adwaita"
gtk-font-name = "DejaVu Sans 10"
gtk-enable-animations = 0
gtk-double-click-time = {CLICKS_MS}
"""
# Nothing that moves by itself, no way to run a command or to end the session.
_ICEWM = """Theme="win95/default.theme"
TaskBarShowClock=0
TaskBarShowCPUStatus=0
TaskBarShowMEMStatus=0
TaskBarShowNetStatus=0
TaskBarShowMailboxStatus=0
TaskBarShowAPMStatus=0
TaskBarShowWorkspaces=0
TaskBarShowShowDesktopButton=0
TaskBarShowWindowListMenu=0
WorkspaceNames=" 1 "
EdgeSwitch=0
ShowAddressBar=0
EnableAddressBar=0
ShowAbout=0
ShowHelp=0
ShowRun=0
ShowThemesMenu=0
ShowFocusModeMenu=0
ShowSettingsMenu=0
ShowLogoutMenu=0
ShowWindowList=0
RunCommand=""
TerminalCommand=""
KeySysDialog=""
KeySysRun=""
KeySysAddressBar=""
KeySysTileVertical=""
DelayPointerFocus=0
ClickToFocus=1
ShowSplash=0
ShowWorkspaceStatus=0
SmartPlacement=1
DoubleBuffer=1
ToolTipDelay=60000
MenuActivateDelay=1
SubmenuMenuActivateDelay=1
"""
_ICEWM += f"MultiClickTime={CLICKS_MS}\nClickMotionDelay=0\nFocusRequestFlashInterval=0\n"
_OPENED_BY = """[Default Applications]
image/png=gpicview.desktop
text/plain=org.xfce.mousepad.desktop
[Added Associations]
image/png=gpicview.desktop;mtpaint.desktop;
text/plain=org.xfce.mousepad.desktop;
"""
_FONTS = "".join(
    f'{kind}FontNameXft="DejaVu Sans:size=9"\n'
    for kind in ("Title", "Menu", "NormalTaskBar", "ActiveTaskBar", "ToolButton", "Status", "ListBox")
)


def environment(settings: str) -> dict[str, str]:
    """Variables of every process; `settings` is the folder of `settings_files`."""
    return {
        **_SIMILAR_EVERYWHERE,
        "XDG_CONFIG_DIRS": settings,
        "GTK2_RC_FILES": f"{settings}/gtkrc-2.0",
        "ICEWM_PRIVCFG": f"{settings}/icewm",
    }


def lacking(names: Iterable[str]) -> list[str]:
    """The apps that are not on this machine."""
    return [name for name in names if shutil.which(APPS[name].argv[0]) is None]


def profiles(names: Iterable[str]) -> dict[str, bytes]:
    """The files in the home that apps begin with: path → content."""
    return {path: text.encode() for name in names for path, text in APPS[name].profile.items()}


def settings_files(
    names: Iterable[str], launcher: str, settings: str, order: Callable[[str], str]
) -> dict[str, bytes]:
    """The files: path → content.

    Args:
        names: of the apps that are on the desktop.
        launcher: the pipe that takes orders to start apps.
        settings: the folder that they will be in.
        order: gives the order that starts an app.
    """
    files = {
        "gtk-3.0/settings.ini": _GTK3,
        "gtkrc-2.0": _GTK2,
        "mimeapps.list": _OPENED_BY,
        "icewm/preferences": _ICEWM,
        "icewm/theme": 'Theme="win95/default.theme"\n',
        "icewm/prefoverride": _FONTS,
        "icewm/keys": "",
        "icewm/programs": "",
        "icewm/startup": "",
    }
    entries = ""
    for name in names:
        app = APPS[name]
        files[f"open/{name}"] = f"echo {shlex.quote(order(name))} > {shlex.quote(launcher)}\n"
        entries += f'prog "{app.title}" {app.icon} /bin/sh "{settings}/open/{name}"\n'
    files["icewm/menu"] = files["icewm/toolbar"] = entries
    return {path: content.encode() for path, content in files.items()}
