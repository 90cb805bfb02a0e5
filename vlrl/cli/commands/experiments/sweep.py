"""`vlrl sweep`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from vlrl.cli.shared import ConfigArgument, DebugOption, JsonOption, OverridesArgument, print_result
from vlrl.errors import ConfigError, VlrlError


class RunsFailed(VlrlError):
    """Some runs of a sweep failed."""


def command(
    config: ConfigArgument,
    overrides: OverridesArgument = None,
    vary: Annotated[
        list[str] | None, typer.Option(help="KEY=VALUE,VALUE …; several options make all combinations.")
    ] = None,
    seeds: Annotated[str, typer.Option(help="Seeds of each combination, with commas.")] = "0",
    folder: Annotated[Path, typer.Option(help="Where the runs' folders and the results are.")] = Path(
        "runs/sweep"
    ),
    method: Annotated[str, typer.Option(help="train, sft, dpo or raft.")] = "train",
    metric: Annotated[
        str | None, typer.Option(help="Metric of the table; by default held-out accuracy.")
    ] = None,
    at_once: Annotated[
        int, typer.Option(min=1, help="Runs beside each other; on GPUs they share a cluster: ray.address.")
    ] = 1,
    report: Annotated[
        bool, typer.Option("--report", help="Do no run; report on those that are done.")
    ] = False,
    json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Train for several values and seeds: `vlrl sweep c.yaml --vary optim.lr=1e-6,3e-6 --seeds 0,1`.

    The same command goes on with a sweep that was stopped; more values or seeds do the runs that are missing.
    At the end there are a table and FOLDER/sweep.png.
    """
    from vlrl.experiments import sweep_report
    from vlrl.experiments.sweep import Sweep, do_sweep, parse_vary

    console = Console(stderr=json, highlight=False)
    if method not in ("train", "sft", "dpo", "raft"):
        raise ConfigError(f"--method {method!r} is not one of train, sft, dpo, raft")
    try:
        numbers = [int(seed) for seed in seeds.split(",")]
    except ValueError as error:
        raise ConfigError(f"--seeds {seeds!r} must be numbers with commas, for instance 0,1,2") from error
    plan = Sweep(config, overrides or [], parse_vary(vary or []), numbers, folder, method)  # type: ignore[arg-type]
    outcomes = {} if report else do_sweep(plan, at_once, lambda text: console.print(text, soft_wrap=True))
    name = sweep_report.metric_of(plan, metric)
    rows = sweep_report.results(plan, name)
    _show(rows, name, console)
    image = folder / "sweep.png"
    if sweep_report.draw(plan, rows, name, image):
        console.print(f"image: {image}", soft_wrap=True)
    failed = [run for run, outcome in outcomes.items() if outcome == "failed"]
    print_result({"metric": name, "rows": [asdict(row) for row in rows], "failed": failed}, json)
    if failed:
        raise RunsFailed(f"{len(failed)} of {len(plan.runs)} runs failed; see {folder / failed[0]}.log")


def _show(rows: list, metric: str, console: Console) -> None:  # type: ignore[type-arg]
    from vlrl.experiments.sweep_report import label

    table = Table(box=None, pad_edge=False)
    for heading in ("values", metric, "95 % interval over seeds", "by seed", "runs"):
        table.add_column(heading)
    for row in rows:
        mean = "" if row.mean is None else f"{row.mean:.4g}"
        interval = "" if row.half_width is None else f"± {row.half_width:.2g}"
        by_seed = ", ".join(f"{seed}: {value:.4g}" for seed, value in row.by_seed.items())
        table.add_row(Text(label(row)), mean, interval, by_seed, ", ".join(row.statuses))
    console.print(table)
