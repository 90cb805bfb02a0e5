"""What desktops could leave behind."""

from __future__ import annotations

import os
from pathlib import Path

from vlrl.envs.gui.x11.desktop import Machine
from vlrl.envs.process_tree import tree

MACHINE = Machine((800, 600))


def descendants() -> set[int]:
    """Every process below this one."""
    return set(tree(os.getpid())[1:])


def traces() -> set[str]:
    """What desktops without a box leave in /tmp."""
    here = [
        *Path("/tmp").glob("vlrl-x11-*"),
        *Path("/tmp/.X11-unix").glob("*"),
        *Path("/tmp").glob(".X*-lock"),
    ]
    return {str(path) for path in here}
