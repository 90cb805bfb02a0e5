"""The contract that a function must keep, by its kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from vlrl.check.algorithms.advantage import check_advantage
from vlrl.check.algorithms.check import check_loss
from vlrl.check.algorithms.correction import check_correction
from vlrl.check.algorithms.selection import check_selection
from vlrl.errors import ConfigError
from vlrl.registry import available

CHECKS: Mapping[str, Callable[[str, Mapping[str, Any]], dict[str, Any]]] = {
    "losses": check_loss,
    "advantages": check_advantage,
    "corrections": check_correction,
    "selections": check_selection,
}


def check_function(name: str, options: Mapping[str, Any], kind: str | None = None) -> dict[str, Any]:
    """Try a function; `ok` says whether it keeps its contract.

    Args:
        name: a registered one, or ./file.py:function.
        options: its own, and those beside it in the config.
        kind: what it is; None is the kind that the name is registered in, and a loss for a file's.

    Raises:
        ConfigError: for a kind without a contract, a name that is not there, a file that fails, or an option
            that is not read.
    """
    if kind is None:
        kind = next((each for each in CHECKS if name in available(each)), "losses")
    if kind not in CHECKS:
        raise ConfigError(f"--kind {kind}: contracts are there for {', '.join(CHECKS)}")
    return CHECKS[kind](name, options)
