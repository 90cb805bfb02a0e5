"""Programs that run BrowserGym: one for each environment, kept for the next one when it is closed."""

from __future__ import annotations

import re
from pathlib import Path

from vlrl.envs.gui.scratch import scratch_folder
from vlrl.foreign.pool import ProgramPool

LINGER_S = 20.0
"""A program without an episode ends after so long, and its browser with it."""
_FOLDER = Path(__file__).parent / "program"


def _remedy(error: str, python: str) -> str:
    if missing := re.search(r"No module named 'browsergym(?:\.(\w+))?'", error):
        wanted = f"browsergym-{missing[1] or 'core'}"
        return (
            f"{python} has no {wanted}; install it in an environment of its own (python3 -m venv DIR; "
            f"DIR/bin/pip install {wanted}) and give its interpreter as the option python"
        )
    return error or "the program ended before it was ready; what it printed is above"


programs = ProgramPool(
    "gui/browsergym",
    _FOLDER,
    "BrowserGym",
    LINGER_S,
    _remedy,
    own_args=lambda: {"folder": str(scratch_folder("browsergym"))},
)
