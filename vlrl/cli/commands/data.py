"""`vlrl data check|show|rate|get`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from vlrl.check.splits import Split, Splits
from vlrl.cli.shared import (
    ConfigArgument,
    DebugOption,
    JsonOption,
    OverridesArgument,
    print_result,
    print_verdict,
    read_config,
)
from vlrl.coordinates import CoordinateFrame
from vlrl.errors import ConfigError

app = typer.Typer(help="Look at the data before training on it.", no_args_is_help=True)

TargetArgument = Annotated[
    str, typer.Argument(help="A YAML config, or data: a file, a folder, a name.", metavar="CONFIG|PATH")
]
ModelOption = Annotated[
    str | None, typer.Option(help="Folder or hub name, instead of model.path.", show_default=False)
]


@app.command("check")
def check(
    target: TargetArgument,
    overrides: OverridesArgument = None,
    split: Annotated[Splits, typer.Option(help="Which rows.")] = "all",
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first N rows of each source.")] = None,
    model: ModelOption = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes; default: one per core.")] = None,
    clean: Annotated[Path | None, typer.Option(help="Write the good rows here, as .jsonl.")] = None,
    html: Annotated[Path | None, typer.Option(help="Write a page here.", show_default=False)] = None,
    no_rewards: Annotated[bool, typer.Option("--no-rewards", help="Do not call the rewards.")] = False,
    warm_cache: Annotated[
        bool, typer.Option("--warm-cache", help="Keep the decoded media in media.cache_dir for training.")
    ] = False,
    json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Check every row before training: `vlrl data check my.yaml --clean good.jsonl --html check.html`.

    Decode every image and video, count tokens, call the rewards on the references, and find duplicates and
    held-out rows in the training set. Exit code 1 if anything is wrong.
    """
    from vlrl.check.data.check import check_data
    from vlrl.check.data.clean import write_clean
    from vlrl.check.data.plan import plan_check, read_target
    from vlrl.check.data.show import rates_table, show
    from vlrl.check.data.summary import summarise
    from vlrl.data.curriculum.summary import kept_rates

    if clean is not None and clean.suffix != ".jsonl":
        raise ConfigError(f"--clean {clean}: the file of good rows ends in .jsonl")
    config = read_target(target, overrides or [], model)
    job, notes = plan_check(config, split=split, limit=limit, rewards=not no_rewards, warm_cache=warm_cache)
    with _bar(sum(source.num_rows for source in job.sources)) as advance:
        checked = check_data(job, notes, num_workers=workers, on_row=advance)
    result, console = summarise(checked), Console(stderr=json, highlight=False)
    show(result, console)
    result["pass_rates"] = [
        summary for source in job.sources for summary in kept_rates(config, source.config, source.section)
    ]
    if result["pass_rates"]:
        console.print(rates_table(result["pass_rates"]))
    if clean is not None:
        written = write_clean(checked, clean)
        result["clean"] = [{"path": str(file.path), "image_root": file.image_root} for file in written]
        for file in written:
            typer.echo(f"good rows: {file.describe()}", err=json)
    if html is not None:
        from vlrl.viewer.pages.data_check import write_check_page

        write_check_page(html, Path(target).name, result)
        typer.echo(f"page: {html}", err=json)
    print_verdict(result, json)


@app.command("show")
def show_command(
    target: TargetArgument,
    overrides: OverridesArgument = None,
    rows: Annotated[str | None, typer.Option(help="Which rows, for instance 0,5,7-9.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="Without --rows: how many, from the first.")] = 16,
    split: Annotated[Split, typer.Option(help="Which rows.")] = "train",
    model: ModelOption = None,
    mask: Annotated[bool, typer.Option("--mask", help="Mark the tokens that are trained.")] = False,
    frame: Annotated[
        CoordinateFrame | None,
        typer.Option(help="Coordinate frame of the data's boxes; default: that of the model's family."),
    ] = None,
    out: Annotated[Path, typer.Option(help="The page.")] = Path("data.html"),
    json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Render rows as the model will see them: `vlrl data show my.yaml --rows 0,5,7-9 --mask`.

    The page has resized images, frames with their times, boxes and every token; it opens offline.
    """
    from vlrl.check.data.plan import plan_check, read_target
    from vlrl.viewer.pages.pick import open_look, pick_rows
    from vlrl.viewer.pages.samples import write_samples

    config = read_target(target, overrides or [], model)
    job, notes = plan_check(config, split=split, rewards=False)
    look, more = open_look(job, frame=frame, mask=mask)
    picked = pick_rows(job, rows, limit)
    write_samples(out, Path(target).name, picked, look, sum(source.num_rows for source in job.sources))
    for note in (*notes, *more):
        typer.echo(f"note: {note}", err=True)
    typer.echo(f"page: {out}", err=json)
    print_result({"page": str(out), "num_rows": len(picked), "notes": [*notes, *more]}, json)


@app.command("rate")
def rate(
    config: ConfigArgument,
    overrides: OverridesArgument = None,
    samples: Annotated[int, typer.Option(min=1, help="Completions of each row.")] = 8,
    out: Annotated[
        Path | None, typer.Option(help="Folder of the files; default: beside the data.", show_default=False)
    ] = None,
    json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Measure how often each training row is solved by the start model: `vlrl data rate my.yaml --samples 8`.

    Writes one small file per source, for data.train.sampler.start_rates. A command that was killed goes on
    where it was when it is given again.
    """
    from vlrl.check.data.show import rates_table
    from vlrl.run.players.rate import rate_rows
    from vlrl.tracking.console import TrainConsole

    loaded = read_config(config, overrides)
    with TrainConsole(f"rate {loaded.model.path}", 1, json_mode=json) as console:
        rated = [source.summary() for source in rate_rows(loaded, samples, out, console)]
    Console(stderr=json, highlight=False).print(rates_table(rated))
    for source in rated:
        typer.echo(f"{source['section']}.sampler.start_rates={source['path']}", err=json)
    num_missing = sum(source["num_missing"] for source in rated)
    if num_missing:
        typer.echo(f"{num_missing} rows have no rate: give the command again, it asks only these", err=True)
    print_verdict({"ok": num_missing == 0, "sources": rated}, json)


@app.command("get")
def get(
    name: Annotated[str, typer.Argument(help="A benchmark of docs/benchmark_sets.md.")],
    folder: Annotated[
        Path | None, typer.Option("--dir", help="Folder to write to; default: data/NAME.", show_default=False)
    ] = None,
    revision: Annotated[str, typer.Option(help="Branch, tag or commit of the hub's dataset.")] = "main",
    only: Annotated[
        list[str] | None,
        typer.Option(help="Only files of this pattern; may be repeated.", show_default=False),
    ] = None,
    json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Fetch the published files of a benchmark: `vlrl data get chartqa --dir data/chartqa`.

    Shows the licence first. Every file is compared with the hub's checksum; what is there already is not
    fetched again, so a command that was killed is given once more. HF_ENDPOINT names another hub.
    """
    from vlrl.data.benchmarks.fetch import fetch

    where = folder or Path("data") / name
    tell = partial(typer.echo, err=json)
    found = fetch(name, where, revision=revision, only=only or (), tell=tell)
    typer.echo(f"fetched: {where}", err=json)
    print_result(found, json)


@contextmanager
def _bar(num_rows: int) -> Iterator[Callable[[Any], None]]:
    """A progress bar on a terminal, nothing elsewhere; yields what is called with each row's result."""
    console = Console(stderr=True)
    columns = (
        TextColumn("checking"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[bad]}", style="red"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task, num_bad = progress.add_task("rows", total=num_rows, bad=""), 0

        def advance(audit: Any) -> None:
            nonlocal num_bad
            num_bad += bool(audit.problems)
            progress.update(task, advance=1, bad=f"{num_bad:,} bad" if num_bad else "")

        yield advance
