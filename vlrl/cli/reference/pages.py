"""Which pages docs/reference/ has: `make reference` writes them all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from vlrl.cli.reference.algorithms import algorithms_page
from vlrl.cli.reference.commands import commands_page
from vlrl.cli.reference.envs import envs_page
from vlrl.cli.reference.metrics import metrics_page
from vlrl.cli.reference.options import options_page
from vlrl.cli.reference.rewards import rewards_page

PAGES: Mapping[str, Callable[[], str]] = {
    "algorithms.md": algorithms_page,
    "cli.md": commands_page,
    "envs.md": envs_page,
    "metrics.md": metrics_page,
    "options.md": options_page,
    "rewards.md": rewards_page,
}
"""File name → what makes its text. The text is the same on every machine that has the locked packages."""


def write_pages(folder: Path) -> list[Path]:
    """Write every page into a folder, which is made if it is missing, and return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / name for name in PAGES]
    for path in paths:
        path.write_text(PAGES[path.name](), encoding="utf-8")
    return paths
