"""Chromium's headless shell: what has to be installed, how it is started, and its sandbox.

The browser has no network: it lives in a network namespace of its own (bubblewrap), behind a proxy that does
not exist, without name resolution, and every request of a page is answered by
`vlrl.envs.gui.web.chromium.gate`. It sees /usr, its fonts and a home in memory; it dies with its driver, and
with it all its processes.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from vlrl.envs.gui.scratch import scratch_folder
from vlrl.envs.gui.spawner import spawn
from vlrl.errors import ConfigError

Sandbox = Literal["require", "warn"]
"""What to do where bubblewrap is missing or may not make namespaces: refuse, or warn and do without."""

_PROGRAMS = ("chromium-headless-shell", "chrome-headless-shell")
_FONTS = {
    Path("/usr/share/fonts/truetype/liberation"): "fonts-liberation",
    Path("/usr/share/fonts/opentype/ipafont-gothic"): "fonts-ipafont-gothic",  # Japanese and Chinese signs
}
_HOME_BYTES, _SHARED_BYTES = 1 << 29, 1 << 30
"""Of what all pages store, and of the images and messages on their way between the browser's processes."""
_NOWHERE = "127.0.0.1:9"
# The browser wants its pipes as descriptors 3 and 4; whatever becomes of them, it dies with its driver.
_LAUNCH = """
import ctypes, fcntl, os, signal, sys
reading, writing, driver = map(int, sys.argv[1:4])
ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
if os.getppid() != driver:
    os._exit(1)
reading, writing = (fcntl.fcntl(fd, fcntl.F_DUPFD, 5) for fd in (reading, writing))
os.dup2(reading, 3), os.dup2(writing, 4)
os.closerange(5, 256)
os.execvp(sys.argv[4], sys.argv[4:])
"""

_FLAGS = (
    "--headless --remote-debugging-pipe --no-first-run --no-default-browser-check --mute-audio --lang=en-US "
    # Images that depend on nothing but the page.
    "--disable-gpu --force-color-profile=srgb --font-render-hinting=none --disable-lcd-text "
    "--disable-font-subpixel-positioning "
    "--disable-threaded-scrolling --disable-threaded-animation --disable-prefer-compositing-to-lcd-text "
    "--disable-smooth-scrolling --disable-checker-imaging --disable-partial-raster "
    # Frames are drawn when they are asked for: half of a step's processor time went into those between.
    "--enable-begin-frame-control --run-all-compositor-stages-before-draw "
    "--disable-background-timer-throttling --disable-backgrounding-occluded-windows "
    "--disable-renderer-backgrounding --disable-hang-monitor --disable-ipc-flooding-protection "
    # Pages of one environment share a process, those of two never do: a browsing context is the border.
    "--process-per-site "
    # Parsed while it streams in, a script is parsed again on every page; else the process remembers it.
    "--disable-features=ScriptStreaming,IsolateOrigins,site-per-process,Translate,BackForwardCache,"
    "PaintHolding,MediaRouter,"
    "RasterInducingScroll,"  # with it the frame after the scroll of a box never ends
    "OptimizationHints,AcceptCHFrame,DestroyProfileOnBrowserClose,SpareRendererForSitePerProcess "
    # Nothing that talks to anybody.
    "--disable-background-networking --disable-component-update --disable-default-apps --disable-sync "
    "--disable-extensions --disable-breakpad --disable-client-side-phishing-detection "
    "--disable-domain-reliability --dns-prefetch-disable --no-pings --block-new-web-contents "
    "--disable-field-trial-config --use-mock-keychain --password-store=basic "
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp"
)
_AWAY = (
    "--host-resolver-rules=MAP * ~NOTFOUND",
    f"--proxy-server={_NOWHERE}",
    "--proxy-bypass-list=<-loopback>",
)
_FONT_CONFIG = """<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "urn:fontconfig:fonts.dtd"><fontconfig>
{fonts}<cachedir>{home}/fonts</cachedir>
{aliases}</fontconfig>
"""
_ALIASES = {
    "Liberation Sans": ("Arial", "Helvetica", "sans-serif", "system-ui", "Verdana", "Segoe UI", "Roboto"),
    "Liberation Serif": ("Times New Roman", "Times", "serif", "Georgia"),
    "Liberation Mono": ("Courier New", "Courier", "monospace", "Consolas", "Menlo"),
}


def start(sandbox: Sandbox, scale: float) -> tuple[subprocess.Popen[bytes], int, int, Path]:
    """Start a browser: its process, where it takes commands, where it answers, and its folder outside.

    Its pages are drawn `scale` pixels to a CSS pixel: the scale that a page is given alone does not reach the
    images of its begin-frame control.

    Whoever gets these closes the descriptors, waits for the process and removes the folder.

    Raises:
        ConfigError: if a program or the fonts are missing, or there is no sandbox and one is required.
    """
    program = find_program()
    boxed = _is_boxed(sandbox)
    folder = scratch_folder("web")
    home = Path("/tmp/home") if boxed else folder
    (folder / "fonts.conf").write_text(_font_config(home))
    commands, answers = os.pipe(), os.pipe()
    launch = (sys.executable, "-I", "-S", "-c", _LAUNCH, str(commands[0]), str(answers[1]), str(os.getpid()))
    box = _box(folder, home) if boxed else ()
    # Root may not use the browser's own sandbox; in the box there is no root.
    bare = ("--no-sandbox",) if not boxed and os.geteuid() == 0 else ()
    drawn = f"--force-device-scale-factor={scale:g}"
    arguments = [*_FLAGS.split(), *_AWAY, *bare, drawn, f"--user-data-dir={home}/profile"]
    with open(folder / "log", "wb") as log:
        process = spawn(
            [*launch, *box, program, *arguments],
            pass_fds=(commands[0], answers[1]),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,  # Ctrl-C is the driver's business
            env={
                "PATH": "/usr/bin:/bin",
                "HOME": str(home),
                "TZ": "UTC",
                "LANG": "C.UTF-8",
                "FONTCONFIG_FILE": f"{home}/fonts.conf",
            },
        )
    os.close(commands[0])
    os.close(answers[1])
    return process, commands[1], answers[0], folder


def find_program() -> str:
    """The path of the browser.

    Raises:
        ConfigError: if it or its fonts are not installed, naming Debian's packages.
    """
    found = next(filter(None, map(shutil.which, _PROGRAMS)), None)
    if found is None:
        raise ConfigError(
            f"web environments need {' or '.join(_PROGRAMS)} on the PATH (Debian: "
            f"apt-get install chromium-headless-shell bubblewrap {' '.join(_FONTS.values())})"
        )
    for folder, package in _FONTS.items():
        if not folder.is_dir():
            raise ConfigError(
                f"web environments draw with the fonts in {folder}, which is missing (Debian: apt-get "
                f"install {package}): with whatever fonts a machine has, its images would be its own"
            )
    return found


def _is_boxed(sandbox: Sandbox) -> bool:
    reason = _why_no_box()
    if not reason:
        return True
    fault = f"the browser's sandbox does not start: {reason}. Install bubblewrap and allow it user namespaces"
    if sandbox == "require":
        raise ConfigError(f"{fault}; or set the environment's option sandbox=warn to go without")
    warnings.warn(
        f"{fault}. WITHOUT IT the browser is a plain process: only its own flags and the gate keep pages "
        "from the network and from this machine's files",
        stacklevel=2,
    )
    return False


@functools.cache
def _why_no_box() -> str:
    if shutil.which("bwrap") is None:
        return "the program bwrap is missing"
    with tempfile.TemporaryDirectory(prefix="vlrl-web-") as folder:
        command = [*_box(Path(folder), Path("/tmp/home")), "/bin/true"]
        tried = subprocess.run(command, capture_output=True, timeout=30)
    return tried.stderr.decode(errors="replace").strip()[:300] if tried.returncode else ""


def _box(folder: Path, home: Path) -> Sequence[str]:
    """The command that runs the command after it in a sandbox."""
    links: list[str] = []
    for place in ("/bin", "/lib", "/lib64"):
        if os.path.islink(place):
            links += ["--symlink", os.readlink(place), place]
        elif os.path.isdir(place):
            links += ["--ro-bind", place, place]
    symbols = str(_symbols())
    return (
        *("bwrap", "--unshare-all", "--uid", "1000", "--gid", "1000", "--cap-drop", "ALL"),
        *("--die-with-parent", "--new-session", "--hostname", "web"),
        *("--ro-bind", "/usr", "/usr", *links, "--ro-bind-try", "/etc/alternatives", "/etc/alternatives"),
        *("--ro-bind-try", "/etc/ld.so.cache", "/etc/ld.so.cache", "--proc", "/proc", "--dev", "/dev"),
        *("--size", str(_SHARED_BYTES), "--tmpfs", "/dev/shm", "--remount-ro", "/dev"),
        *("--size", str(_HOME_BYTES), "--tmpfs", "/tmp", "--dir", str(home)),
        *("--ro-bind", symbols, symbols, "--remount-ro", "/"),
        *("--ro-bind-try", str(folder / "fonts.conf"), f"{home}/fonts.conf", "--chdir", str(home), "--"),
    )


@functools.cache
def _symbols() -> Path:
    """DejaVu's fonts, which come with Matplotlib: for what Liberation's lack."""
    import matplotlib

    return Path(matplotlib.get_data_path()) / "fonts" / "ttf"


def _font_config(home: Path) -> str:
    aliases = "".join(
        f'<alias binding="same"><family>{name}</family><prefer><family>{family}</family></prefer></alias>\n'
        for family, names in _ALIASES.items()
        for name in names
    )
    folders = "".join(f"<dir>{folder}</dir>" for folder in (*_FONTS, _symbols()))
    return _FONT_CONFIG.format(fonts=folders, home=home, aliases=aliases)
