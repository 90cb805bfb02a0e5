"""`vlrl reward list|show|new|test|score|serve`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from vlrl.cli.shared import (
    DebugOption,
    JsonOption,
    OverridesArgument,
    options_of,
    print_result,
    print_verdict,
)
from vlrl.errors import ConfigError

app = typer.Typer(help="Write, test and compare reward functions.", no_args_is_help=True)

RewardArgument = Annotated[
    str, typer.Argument(help="A registered name, or path/to/file.py:function.", metavar="REWARD")
]
OptionOption = Annotated[
    list[str] | None, typer.Option("--option", help="An option of the reward: key=value; may be repeated.")
]
AdapterOption = Annotated[
    str,
    typer.Option(
        help="Convention that the function follows: auto, plain, trl, verl, openrlhf, slime, easyr1, …"
    ),
]


@app.command("list")
def list_command(json: JsonOption = False, debug: DebugOption = False) -> None:
    """List all rewards, built in and installed: `vlrl reward list --json`."""
    from vlrl.check.catalog.rewards import list_rewards
    from vlrl.check.catalog.rewards_show import show_list

    rows = list_rewards()
    if not json:
        show_list(rows, Console(highlight=False))
    print_result({"rewards": rows}, json)


@app.command("show")
def show_command(name: RewardArgument, json: JsonOption = False, debug: DebugOption = False) -> None:
    """Show what a reward computes, its options and its cost: `vlrl reward show box_iou`."""
    from vlrl.check.catalog.rewards import describe
    from vlrl.check.catalog.rewards_show import show_one

    described = describe(name)
    if not json:
        show_one(described, Console(highlight=False))
    print_result(described, json)


@app.command("new")
def new_command(
    name: Annotated[str, typer.Argument(help="Name of the function and of its file.")],
    folder: Annotated[Path, typer.Option("--dir", help="Folder to write to.")] = Path(),
    batched: Annotated[bool, typer.Option("--batched", help="The reward takes lists.")] = False,
    is_async: Annotated[
        bool, typer.Option("--async", help="The reward awaits something, such as a server.")
    ] = False,
    json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Write a working reward, and its test: `vlrl reward new close_enough`."""
    from vlrl.check.catalog.new_reward import next_commands, write_new

    files = write_new(name, folder, batched=batched, is_async=is_async)
    commands = next_commands(name, folder)
    for file in files:
        typer.echo(f"wrote {file}", err=json)
    typer.echo("next:", err=json)
    for command in commands:
        typer.echo(f"  {command}", err=json)
    print_result({"files": [str(file) for file in files], "next": commands}, json)


@app.command("test")
def test_command(
    reward: RewardArgument,
    overrides: OverridesArgument = None,
    data: Annotated[
        str | None,
        typer.Option(help="Samples: a .jsonl file, a folder, a name, a config.", show_default=False),
    ] = None,
    option: OptionOption = None,
    adapter: AdapterOption = "auto",
    html: Annotated[Path | None, typer.Option(help="Write a page here.", show_default=False)] = None,
    limit: Annotated[int, typer.Option(min=1, help="Most samples.")] = 16,
    margin: Annotated[
        float,
        typer.Option(
            min=0,
            max=1,
            help="Most that a text without an answer may score, as a share of the right answer's.",
        ),
    ] = 0.1,
    timeout_s: Annotated[float, typer.Option("--timeout-s", min=0.1, help="Time limit of a call.")] = 5.0,
    seed: Annotated[int, typer.Option(help="Seed of random bytes.")] = 0,
    json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Test a reward, also on texts without an answer: `vlrl reward test ./my.py:score --data my.jsonl`.

    Overrides apply to the data, such as shape=llava. Exit code 1 if the reward raises, hangs, is not
    deterministic, or pays for a completion without an answer.
    """
    from vlrl.check.rewards.child import TrialJob, run_in_child
    from vlrl.check.rewards.show import show

    if overrides and data is None:
        raise ConfigError(f"{overrides[0]!r} is an override of the data: give --data as well")
    checked = _checked(reward, option, adapter)
    job = TrialJob(checked, data, tuple(overrides or ()), limit, margin, timeout_s, seed)
    console = Console(stderr=json, highlight=False)
    with Console(stderr=True).status(reward) as status:
        result = run_in_child(job, lambda phase: status.update(f"{reward}: {phase}"))
    show(result, console)
    if html is not None:
        from vlrl.viewer.pages.rewards import write_reward_page

        write_reward_page(html, result)
        typer.echo(f"page: {html}", err=json)
    print_verdict(result, json)


@app.command("score")
def score_command(
    reward: RewardArgument,
    rollouts: Annotated[
        Path, typer.Argument(help="A run's folder, or a file such as RUN/rollouts/after.jsonl.")
    ],
    config: Annotated[
        Path | None, typer.Option(help="The run's config.yaml, for the reward's options and the rows.")
    ] = None,
    option: OptionOption = None,
    adapter: AdapterOption = "auto",
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first so many completions.")] = None,
    json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Score an old run's completions again: `vlrl reward score math RUN`.

    Exit code 1 if a completion cannot be scored.
    """
    from vlrl.check.rescore.rescore import options_in, rescore
    from vlrl.check.rescore.show import show_rescored

    options = {**(options_in(config, reward) if config else {}), **options_of(option, "--option ")}
    result = rescore(_find(reward, None, adapter, options), rollouts, config, limit)
    show_rescored(result, Console(stderr=json, highlight=False))
    print_result(result, json)
    if result["num_failed"]:
        raise typer.Exit(1)


@app.command("serve")
def serve_command(
    folder: Annotated[Path, typer.Argument(help="RUN/model of `vlrl reward-model`.")],
    engine_options: Annotated[
        list[str] | None, typer.Argument(help="Options of vLLM's server, after --.", metavar="[-- OPTION …]")
    ] = None,
    host: Annotated[str, typer.Option(help="Address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port to listen at.")] = 8001,
    json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Serve a reward model to `classifier`, on an engine of its own: `vlrl reward serve runs/rm/model`.

    What comes after -- goes to vLLM's server as it is. CUDA_VISIBLE_DEVICES says on which GPU.
    """
    from vlrl.engine.classify import serve, serve_arguments

    arguments = serve_arguments(folder.absolute(), host, port, engine_options or ())
    base_url = f"http://{host}:{port}/v1"
    endpoint = f"{{base_url: {base_url}, model: {folder.absolute()}}}"
    typer.echo(f"rewards: {{name: classifier, options: {{verbatim: true, endpoint: {endpoint}}}}}", err=True)
    print_result({"endpoint": {"base_url": base_url, "model": str(folder.absolute())}}, json)
    serve(arguments)


def _find(reward: str, option: list[str] | None, adapter: str, options: dict[str, Any] | None = None) -> Any:
    """The reward with its options, checked as a config's are."""
    from vlrl.scoring.functions import find_reward

    checked = _checked(reward, option, adapter, options)
    return find_reward(checked.name, checked.options, checked.adapter)


def _checked(
    reward: str, option: list[str] | None, adapter: str, options: dict[str, Any] | None = None
) -> Any:
    """The entry of a config that these arguments make; the reward is not looked for."""
    from vlrl.config import parse_config

    given = options_of(option, "--option ") if options is None else options
    entry = {"name": reward, "adapter": adapter, "options": given}
    tree = {"model": {"path": "none"}, "data": {"train": {"name": "none"}}, "rewards": [entry]}
    (checked,) = parse_config(tree, source="vlrl reward").rewards
    return checked
