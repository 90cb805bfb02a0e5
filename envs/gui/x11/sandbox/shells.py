"""The two shells of a desktop: one starts the server, the window manager and the other shell; that, the apps.

Orders are read a line at a time. Standard output tells the host who ended how, the server's and the window
manager's deaths first of all; standard error, the number of the display once the server takes connections.
"""

from __future__ import annotations

import shlex
from typing import NamedTuple

from vlrl.envs.gui.x11.sandbox import box

FILTER_FD = "8"
"""Where an app's box finds the filter of its system calls."""

_MOST_PROCESSES = 256


class AppLimits(NamedTuple):
    """AppLimits of each process of an app.

    Attributes:
        data_mib: private memory.
        address_mib: all of its mappings; the light apps have half of this at most.
    """

    data_mib: int = 512
    address_mib: int = 1024


# Some apps look for their user's folder here and not in HOME.
_USERS = f"echo user:x:1000:1000::{box.HOME}:/bin/bash > /etc/passwd"
_OUTER = """
exec 3>&1 4>&2 >/dev/null 2>&1
cd {run}
{users}
mkfifo -m 600 apps
( ulimit -d {data_kib}
  Xvfb {display} -screen 0 {width}x{height}x24 -fbdir {run} -displayfd 4 {access} -nolisten tcp -noreset \\
    -r -s 0 -dpi 96 </dev/null 3>&-; echo "Xvfb $?" >&3 ) &
exec 4>&-
( {inner_box} /bin/sh -c {inner} <>apps; echo "launcher $?" >&3 ) &
while read -r order argument; do
  case $order in
    display) DISPLAY=:$argument; export DISPLAY ;;
    manage) ( ulimit -d {data_kib}; icewm </dev/null 3>&-; echo "icewm $?" >&3 ) & ;;
  esac
done
"""
# `run NAME PRIVATE ADDRESSES COMMAND …` starts an app, with its limits in KiB, and says how it ended.
_INNER = """
ulimit -c 0{ulimits}
cd {home}
echo "up 0" >&3
run() {{
  name=$1; data=$2; addresses=$3; shift 3
  ( ulimit -d $data; ulimit -v $addresses; "$@" </dev/null 3>&-{filtered}; echo "$name $?" >&3 ) &
}}
while read -r order; do eval "$order"; done
"""


def inner_shell(home: str, filter_file: str, *, boxed: bool) -> str:
    """The script that starts apps.

    Args:
        home: the user's folder.
        filter_file: of the apps' system calls; "" for none.
        boxed: its processes are its user's only ones.
    """
    return _INNER.format(
        home=home,
        ulimits=f"; ulimit -p {_MOST_PROCESSES}" if boxed else "",
        filtered=f" {FILTER_FD}<{shlex.quote(filter_file)}" if filter_file else "",
    )


def outer_shell(inner: str, size: tuple[int, int], run: str, *, boxed: bool) -> str:
    """The script that starts the rest.

    Args:
        inner: the other script.
        size: (width, height) of the screen.
        run: the folder of what no app may see.
        boxed: there is a box, whose socket nobody else reaches.
    """
    return _OUTER.format(
        run=run,
        users=_USERS if boxed else "",
        data_kib=AppLimits().data_mib << 10,
        width=size[0],
        height=size[1],
        display=":0" if boxed else "",
        access="-ac" if boxed else "",
        inner_box=shlex.join(box.inner_box()) if boxed else "",
        inner=shlex.quote(inner),
    )
