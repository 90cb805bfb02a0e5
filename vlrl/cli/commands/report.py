"""`vlrl report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vlrl.cli.shared import DebugOption, JsonOption, print_result
from vlrl.errors import ConfigError


def command(
    run_dir: Annotated[
        Path, typer.Argument(help="Folder of a run, or a .jsonl file of rollouts.", metavar="RUN|FILE.jsonl")
    ],
    json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Write a run's report.html again from its files: `vlrl report runs/quickstart`.

    For a file that `vlrl rollout` or `vlrl eval --out` wrote, write a page of its rollouts next to it:
    `vlrl report out.jsonl`. With logging.timeline the run's last steps are drawn too, as timeline.png.
    """
    from vlrl.viewer.gantt import draw_run
    from vlrl.viewer.pages.report import write_report, write_rollout_report

    if run_dir.is_file():
        page = write_rollout_report(run_dir)
        typer.echo(f"report: {page}", err=json)
        print_result({"report": str(page)}, json)
        return
    if not (run_dir / "metrics.jsonl").is_file():
        raise ConfigError(f"{run_dir} is not a run's folder: it has no metrics.jsonl")
    path = write_report(run_dir)
    typer.echo(f"report: {path}", err=json)
    result = {"report": str(path)}
    if image := draw_run(run_dir):
        typer.echo(f"timeline: {image}", err=json)
        result["timeline"] = str(image)
    print_result(result, json)
