"""The files that this process has open, whatever threads of earlier tests do meanwhile."""

from __future__ import annotations

import os
import time
from pathlib import Path

PATIENCE_S = 60.0
"""Ray's threads of an earlier test have files and sockets open for a moment."""


def open_files() -> dict[str, str]:
    """Descriptor → what it is."""
    folder = Path("/proc/self/fd")
    found = {}
    for name in os.listdir(folder):
        try:
            found[name] = os.readlink(folder / name)
        except OSError:  # of the listing itself
            continue
    return found


def left_open(before: dict[str, str]) -> dict[str, str]:
    """What was opened after `before` was taken, and is not closed within PATIENCE_S."""
    end = time.monotonic() + PATIENCE_S
    while True:
        left = {name: target for name, target in open_files().items() if name not in before}
        if not left or time.monotonic() > end:
            return left
        time.sleep(0.05)
