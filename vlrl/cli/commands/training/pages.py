"""A page of training run as a command: lock and console around it, and the report after it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeAlias

from vlrl.cli.failures import resumable_run
from vlrl.cli.shared import print_result
from vlrl.tracking.console import TrainConsole

if TYPE_CHECKING:
    from vlrl.config import Config

TrainFn: TypeAlias = Callable[[TrainConsole], Mapping[str, object]]
"""A page of training, given the console; returns the summary."""


def run_page(name: str, config: Config, open_page: Callable[[], TrainFn], as_json: bool) -> None:
    """Train, write the report, and print the summary.

    Args:
        name: of the method, for the console's title.
        config: of the run.
        open_page: imports the page, which takes seconds: called when the title is shown.
        as_json: print the summary to stdout as JSON.
    """
    announced = TrainConsole(f"{name} {config.run.name}", config.num_steps, json_mode=as_json).announce()
    train = open_page()
    from vlrl.viewer.pages.report import write_report

    with resumable_run(config), announced as console:
        summary = train(console)
        report, model = write_report(config.run_dir), config.run_dir / "model"
        console.note(f"model: {model}")
        console.note(f"report: {report}")
    print_result({**summary, "model": str(model), "report": str(report)}, as_json)
