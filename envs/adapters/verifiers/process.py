"""The program that runs `verifiers`: started when needed, shared by the episodes of one environment."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vlrl.errors import ConfigError
from vlrl.foreign.program import ForeignProgram

_FOLDER = Path(__file__).parent / "program"
_running: dict[tuple[str, str, str, float], ForeignProgram] = {}
_starting = threading.Lock()


def process_of(python: str | None, name: str, args: Mapping[str, Any], linger_s: float) -> ForeignProgram:
    """The program of an environment: the one that runs, or a new one.

    Args:
        python: interpreter; None is the one that runs vlrl.
        name: the environment's id, or a file.
        args: of the environment.
        linger_s: it stays for so long after its last episode.

    Raises:
        ConfigError: if there is no such interpreter or environment, or verifiers is not installed.
    """
    file = Path(name.split(".py", 1)[0] + ".py")
    if ".py" in name and not file.is_file():
        raise ConfigError(f"verifiers: {file} does not exist (looked in {Path.cwd()})")
    key = (python or sys.executable, name, json.dumps(dict(args), sort_keys=True), linger_s)
    with _starting:
        if key not in _running or not _running[key].alive:
            _running[key] = ForeignProgram("verifiers", key[0], _FOLDER, name, args, linger_s, _remedy)
        return _running[key]


def _remedy(error: str, python: str) -> str:
    if "No module named 'verifiers'" in error:
        return (
            f"{python} has no verifiers; pip install 'vlrl[verifiers]', or, as it wants older versions of "
            "some packages than others do, install verifiers in an environment of its own and give its "
            "interpreter as the option python"
        )
    return error or "the program ended before it was ready; what it printed is above"
