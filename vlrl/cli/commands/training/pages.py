"""A page of training run as a command: lock and console around it, and the report after it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from vlrl.cli.failures import resumable_run
from vlrl.cli.shared import print_result
from vlrl.tracking.console import TrainConsole

if TYPE_CHECKING:
    from vlrl.config import Config


def run_page(
    name: str, config: Config, train: Callable[[TrainConsole], Mapping[str, object]], as_json: bool
) -> None:
    """Train, write the report, and print the summary.

    Args:
        name: of the method, for the console's title.
        config: of the run.
        train: the page, given the console; returns the summary.
        as_json: print the summary to stdout as JSON.
    """
    from vlrl.viewer.pages.report import write_report

    with (
        resumable_run(config),
        TrainConsole(f"{name} {config.run.name}", config.num_steps, json_mode=as_json) as console,
    ):
        summary = train(console)
        report, model = write_report(config.run_dir), config.run_dir / "model"
        console.note(f"model: {model}")
        console.note(f"report: {report}")
    print_result({**summary, "model": str(model), "report": str(report)}, as_json)
