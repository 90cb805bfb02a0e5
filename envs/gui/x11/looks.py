"""The looks of a desktop, and the settings that keep it the same every time, and still."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from vlrl.envs.gui.x11.apps import APPS, CLICKS_MS
from vlrl.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Theme:
    """How windows and widgets look.

    Attributes:
        gtk: the theme of GTK 2 and 3; empty is GTK's own, a different one of each.
        frames: the theme of the window manager.
        background: the desktop's colour, 0xRRGGBB.
        colours: of the active window's title and of the task bar with their texts, RR/GG/BB; none keeps those
            of `frames`.
        font: of the apps, with its size.
    """

    gtk: str
    frames: str
    background: int
    font: str = "DejaVu Sans 10"
    colours: tuple[str, ...] = ()


THEMES: Mapping[str, Theme] = {
    "classic": Theme("", "win95", 0x3A6EA5),
    "modern": Theme(
        "Arc", "default", 0x5B7A9D, "DejaVu Sans 11", ("52/94/E2", "FF/FF/FF", "F5/F6/F7", "30/34/40")
    ),
    "dark": Theme(
        "Arc-Dark", "default", 0x24303C, "DejaVu Sans 11", ("52/94/E2", "FF/FF/FF", "2F/34/3F", "D3/DA/E3")
    ),
}
_THEMES_OF_GTK = Path("/usr/share/themes")


def check_themes(names: Iterable[str]) -> None:
    """Look for what themes need.

    Raises:
        ConfigError: for an unknown name; naming the package of one that is not installed.
    """
    for name in names:
        if name not in THEMES:
            raise ConfigError(f"env gui/x11: option theme has {name!r}; choose from {', '.join(THEMES)}")
        if THEMES[name].gtk and not (_THEMES_OF_GTK / THEMES[name].gtk).is_dir():
            raise ConfigError(
                f"env gui/x11: the theme {name!r} is not installed. Debian: apt-get install "
                "--no-install-recommends arc-theme; or set the option theme: classic"
            )


_SIMILAR_EVERYWHERE = {
    "LANG": "C.UTF-8",
    "TZ": "UTC",
    "PS1": "user@desktop:\\w$ ",
    "HISTFILE": "/dev/null",
    "GSETTINGS_BACKEND": "memory",
    "DBUS_SESSION_BUS_ADDRESS": "disabled:",  # apps neither start a bus nor wait for one
    "GTK_OVERLAY_SCROLLING": "0",
    "XDG_RUNTIME_DIR": "/tmp",
    "OMP_NUM_THREADS": "1",
    "XDG_CACHE_HOME": "/tmp/.cache",  # a browser's has 20 MiB
    "MESA_SHADER_CACHE_DISABLE": "true",
}
_NAMED_WIDGETS = {"GTK_MODULES": "gail:atk-bridge", "GNOME_ACCESSIBILITY": "1"}
_GTK3 = f"""[Settings]
gtk-enable-animations = false
gtk-cursor-blink = false
gtk-icon-theme-name = Adwaita
gtk-recent-files-enabled = false
gtk-double-click-time = {CLICKS_MS}
"""
_GTK2 = f"""gtk-cursor-blink = 0
gtk-icon-theme-name = "Adwaita"
gtk-enable-animations = 0
gtk-double-click-time = {CLICKS_MS}
"""
# Nothing that moves by itself, no way to run a command or to end the session.
_ICEWM = """TaskBarShowClock=0
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
# Our own user is unknown in the box, so the bus asks nobody who he is; nobody else reaches its socket.
_BUS = """<busconfig><type>session</type><listen>unix:path={bus}</listen>
<limit name="max_replies_per_connection">50000</limit>
<auth>EXTERNAL</auth><auth>ANONYMOUS</auth><allow_anonymous/>
<servicedir>/usr/share/dbus-1/accessibility-services</servicedir>
<policy context="default"><allow send_destination="*"/><allow receive_sender="*"/><allow own="*"/></policy>
</busconfig>
"""
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


def environment(settings: str, bus: str = "") -> dict[str, str]:
    """Variables of every process.

    Args:
        settings: the folder of `settings_files`.
        bus: the socket of the accessibility bus; "" for none.
    """
    return {
        **_SIMILAR_EVERYWHERE,
        **(_NAMED_WIDGETS | {"AT_SPI_BUS_ADDRESS": f"unix:path={bus}"} if bus else {"NO_AT_BRIDGE": "1"}),
        "XDG_CONFIG_DIRS": settings,
        "GTK2_RC_FILES": f"{settings}/gtkrc-2.0",
        "ICEWM_PRIVCFG": f"{settings}/icewm",
    }


def settings_files(
    theme: Theme,
    names: Iterable[str],
    launcher: str,
    settings: str,
    order: Callable[[str], str],
    bus: str = "",
) -> dict[str, bytes]:
    """The files: path → content.

    Args:
        theme: of windows and widgets.
        names: of the apps that are on the desktop.
        launcher: the pipe that takes orders to start apps.
        settings: the folder that they will be in.
        order: gives the order that starts an app.
        bus: the socket of the accessibility bus; "" for none.
    """
    frames = f'Theme="{theme.frames}/default.theme"\n'
    gtk2_theme = f'gtk-theme-name = "{theme.gtk}"\n' if theme.gtk else ""
    files = {
        "gtk-3.0/settings.ini": f"{_GTK3}gtk-theme-name = {theme.gtk or 'Adwaita'}\n"
        f"gtk-font-name = {theme.font}\n",
        "gtkrc-2.0": f'{_GTK2}{gtk2_theme}gtk-font-name = "{theme.font}"\n',
        "mimeapps.list": _OPENED_BY,
        "icewm/preferences": frames + _ICEWM,
        "icewm/theme": frames,
        "icewm/prefoverride": _FONTS + _colours(theme),
        "icewm/keys": "",
        "icewm/programs": "",
        "icewm/startup": "",
        "bus.conf": _BUS.format(bus=bus),
    }
    entries = ""
    for name in names:
        app = APPS[name]
        files[f"open/{name}"] = f"echo {shlex.quote(order(name))} > {shlex.quote(launcher)}\n"
        entries += f'prog "{app.title}" {app.icon} /bin/sh "{settings}/open/{name}"\n'
    files["icewm/menu"] = files["icewm/toolbar"] = entries
    return {path: content.encode() for path, content in files.items()}


def _colours(theme: Theme) -> str:
    if not theme.colours:
        return ""
    title, title_text, bar, bar_text = (f"rgb:{colour}" for colour in theme.colours)
    plain = ("DefaultTaskBar", "NormalTaskBarApp", "MinimizedTaskBarApp", "ToolButton", "NormalMenu")
    marked = ("ActiveTitleBar", "ActiveTitleButton", "ActiveBorder", "ActiveTaskBarApp", "ActiveMenuItem")
    unmarked = ("NormalTitleBar", "NormalTitleButton", "NormalBorder")
    colours = dict.fromkeys((*plain, *unmarked), bar) | dict.fromkeys(marked, title)
    texts = ("NormalTaskBarApp", "MinimizedTaskBarApp", "ToolButton", "NormalMenuItem", "NormalTitleBar")
    marked_texts = ("ActiveTitleBar", "ActiveTaskBarApp", "ActiveMenuItem")
    colours |= {f"{name}Text": bar_text for name in texts} | {
        f"{name}Text": title_text for name in marked_texts
    }
    settings = {f"Color{name}": value for name, value in colours.items()}
    settings |= {"TitleButtonsLeft": "s", "TitleButtonsRight": "xmi"}
    return "".join(f'{name}="{value}"\n' for name, value in settings.items())
