"""Which permissions new files of this process have."""

from __future__ import annotations

import os


def umask() -> int:
    """The bits that are taken from the mode of every new file; it can only be read by setting it."""
    found = os.umask(0)
    os.umask(found)
    return found
