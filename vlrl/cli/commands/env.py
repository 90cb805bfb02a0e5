"""`vlrl env list|check|bench|play|demos|replay|screens|serve`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from vlrl.cli.shared import DebugOption, JsonOption, options_of, print_result, print_verdict

app = typer.Typer(help="Look at environments, play and check them.", no_args_is_help=True)

NameArgument = Annotated[
    str, typer.Argument(help="A registered name, or path/to/file.py:Class.", metavar="NAME")
]
OptionsArgument = Annotated[
    list[str] | None, typer.Argument(help="The environment's options: key=value …", metavar="[KEY=VALUE]…")
]
TaskOption = Annotated[
    list[str] | None, typer.Option("--task", help="An option of the task: key=value; may be repeated.")
]
SeedOption = Annotated[int, typer.Option(min=0, help="Seed of the episodes.")]


@app.command("list")
def list_command(json: JsonOption = False, debug: DebugOption = False) -> None:
    """List all environments, built in and installed: `vlrl env list --json`."""
    from vlrl.check.catalog.envs import list_envs
    from vlrl.check.envs.show import show_list

    rows = list_envs()
    if not json:
        show_list(rows, Console(highlight=False))
    print_result({"envs": rows}, json)


@app.command("check")
def check_command(
    name: NameArgument,
    options: OptionsArgument = None,
    task: TaskOption = None,
    episodes: Annotated[int, typer.Option(min=1, help="Episodes to play, each with its own seed.")] = 20,
    max_turns: Annotated[int, typer.Option("--max-turns", min=1, help="Most turns of an episode.")] = 200,
    timeout_s: Annotated[float, typer.Option("--timeout-s", min=0.1, help="Time limit of a call.")] = 30.0,
    seed: SeedOption = 0,
    json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Check an environment against the contract: `vlrl env check visual/mazes level=3`.

    The environment runs in its own process, so that a hang or a crash is reported too. Exit code 1 if it
    breaks the contract, not for warnings.
    """
    from vlrl.check.envs.episodes import Request
    from vlrl.check.envs.run import check_env
    from vlrl.check.envs.show import show_check

    request = Request(
        name,
        options_of(options, "option "),
        options_of(task, "--task "),
        seed=seed,
        episodes=episodes,
        max_turns=max_turns,
        timeout_s=timeout_s,
    )
    with Console(stderr=True).status(name) as status:
        result = check_env(request, on_step=lambda step: status.update(f"{name}: {step}"))
    show_check(result, Console(stderr=json, highlight=False))
    print_verdict(result, json)


@app.command("bench")
def bench_command(
    names: Annotated[list[str], typer.Argument(help="Names, or path/to/file.py:Class.", metavar="NAME…")],
    option: Annotated[
        list[str] | None, typer.Option("--option", help="An option for all of them: key=value.")
    ] = None,
    seconds: Annotated[float, typer.Option(min=0.01, help="Time to measure resets, and again steps.")] = 2.0,
    seed: SeedOption = 0,
    json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Measure steps and resets per second in one thread: `vlrl env bench visual/mazes`."""
    from vlrl.check.envs.episodes import Request
    from vlrl.check.envs.run import bench_env
    from vlrl.check.envs.show import show_bench

    options, rows = options_of(option, "--option "), []
    with Console(stderr=True).status("measuring") as status:
        for name in names:
            status.update(name)
            rows.append(bench_env(Request(name, options, seed=seed), seconds))
    if not json:
        show_bench(rows, Console(highlight=False))
    print_result({"envs": rows, **(rows[0] if len(rows) == 1 else {})}, json)


@app.command("play")
def play_command(
    name: NameArgument,
    options: OptionsArgument = None,
    task: TaskOption = None,
    seed: SeedOption = 0,
    out: Annotated[Path, typer.Option(help="Folder that saved demonstrations are added to.")] = Path(
        "demonstrations"
    ),
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0: any free one.")] = 0,
    open_browser: Annotated[bool, typer.Option("--open/--no-open", help="Open the page.")] = True,
    json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Play an environment in the browser: `vlrl env play visual/mazes level=3`.

    The page is served to this machine only. Saved episodes are rows for `vlrl sft`.
    Ctrl-C ends it.
    """
    from vlrl.env_play.server import serve

    result = serve(
        name,
        options_of(options, "option "),
        options_of(task, "--task "),
        seed=seed,
        out=out,
        port=port,
        on_ready=lambda url: _ready(url, open_browser, json),
    )
    print_result(result, json)


@app.command("demos")
def demos_command(
    name: NameArgument,
    options: OptionsArgument = None,
    task: TaskOption = None,
    num: Annotated[int, typer.Option(min=1, help="Episodes to add.")] = 100,
    out: Annotated[Path, typer.Option(help="Folder that they are added to.")] = Path("demonstrations"),
    split: Annotated[str, typer.Option(help="train or heldout: the two never share a seed.")] = "train",
    max_turns: Annotated[int, typer.Option("--max-turns", min=1, help="Longest episode.")] = 64,
    seed: SeedOption = 0,
    json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Let an environment's oracle play, as rows for `vlrl sft`: `vlrl env demos gui/emu --num 500`.

    Episodes without success, and tasks that the oracle has no rule for, are left out and counted.
    """
    from vlrl.env_play.demonstrations import demonstrate

    with Console(stderr=True).status(name) as status:
        result = demonstrate(
            name,
            options_of(options, "option "),
            options_of(task, "--task "),
            num=num,
            folder=out,
            split=split,
            seed=seed,
            max_turns=max_turns,
            on_episode=lambda done: status.update(f"{name}: {done} of {num}"),
        )
    left_out = ", ".join(f"{count} {reason}" for reason, count in result["not_added"].items())
    said = f"{result['num_added']} episodes of {result['num_turns']} turns added to {result['path']}"
    typer.echo(f"{said}; not added: {left_out}" if left_out else said, err=json)
    if result["num_added"] < num:
        typer.echo(f"asked for {num}: too few of the seeds tried are demonstrations", err=True)
    print_result(result, json)


@app.command("replay")
def replay_command(
    path: Annotated[Path, typer.Argument(help="A run's folder, or a file of rollouts or demonstrations.")],
    episode: Annotated[str | None, typer.Option(help="Only this one: SAMPLE, or SAMPLE#INDEX.")] = None,
    json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Play recorded episodes again from their seeds and actions: `vlrl env replay runs/mine`.

    Exit code 1 if a reward or an image differs from the recorded one.
    """
    from vlrl.check.envs.show import show_replay
    from vlrl.env_play.replay import replay_all

    with Console(stderr=True).status("playing again") as status:
        result = replay_all(path, episode, on_episode=status.update)
    show_replay(result, Console(stderr=json, highlight=False))
    print_verdict(result, json)


@app.command("screens")
def screens_command(
    name: NameArgument,
    options: OptionsArgument = None,
    out: Annotated[Path, typer.Option(help="Folder to write to.")] = Path("screens"),
    num: Annotated[int, typer.Option(min=1, help="Screens, one click each.")] = 100,
    split: Annotated[str, typer.Option(help="train or heldout: the two never share a seed.")] = "heldout",
    max_actions: Annotated[
        int, typer.Option("--max-actions", min=0, help="Most actions before the screenshot.")
    ] = 6,
    seed: SeedOption = 0,
    json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Write named widgets of a GUI environment as a ScreenSpot-v2 set: `vlrl env screens gui/emu --num 500`.

    One JSON file, and a PNG per screen, as the dataset `screenspot` and other projects' scripts read them.
    """
    from vlrl.registry import resolve

    given: Any = {"split": split, "max_actions": max_actions, "seed": seed}
    rows = resolve("datasets", "gui_grounding")(name, options_of(options, "option "), num_rows=num, **given)
    with Console(stderr=True).status(name) as status:
        result = rows.write_screenspot(out, lambda done: status.update(f"{name}: {done} of {num}"))
    kinds = f"{result['num_text']} text, {result['num_icon']} icon"
    typer.echo(f"{result['num_records']} records ({kinds}): {result['path']}", err=json)
    print_result(result, json)


@app.command("serve")
def serve_command(
    name: NameArgument,
    options: OptionsArgument = None,
    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0: all.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0: any free one.")] = 0,
    token: Annotated[
        str | None,
        typer.Option(envvar="VLRL_ENV_TOKEN", help="Token that clients must send; by default a random one."),
    ] = None,
    max_sessions: Annotated[int, typer.Option(min=1, help="Most episodes at once.")] = 64,
    lease_s: Annotated[
        float, typer.Option(min=0.1, help="Seconds until a silent client's episode is ended.")
    ] = 600.0,
    isolation: Annotated[str, typer.Option(help="inline, thread or process: as in a config.")] = "thread",
    reset_timeout_s: Annotated[float, typer.Option(min=0.1, help="Time limit of a reset.")] = 60.0,
    step_timeout_s: Annotated[float, typer.Option(min=0.1, help="Time limit of a step.")] = 30.0,
    json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Serve an environment to runs on other machines: `vlrl env serve visual/mazes level=3 --host 0.0.0.0`.

    A run uses it as the environment `remote`, with the URL and the token in VLRL_ENV_TOKEN. Ctrl-C ends it.
    """
    import secrets

    from vlrl.config.rollout import EnvConfig
    from vlrl.environment.serve.server import ServeOptions, serve

    config = EnvConfig.model_validate(
        {"isolation": isolation, "reset_timeout_s": reset_timeout_s, "step_timeout_s": step_timeout_s}
    )
    secret = token or secrets.token_urlsafe(24)
    serving = ServeOptions(
        name,
        options_of(options, "option "),
        secret,
        max_sessions=max_sessions,
        lease_s=lease_s,
        config=config,
    )
    serve(serving, host, port, lambda url: _serving(url, None if token else secret, json))


def _serving(url: str, made_up: str | None, json: bool) -> None:
    import sys

    if made_up:
        typer.echo(f"clients need VLRL_ENV_TOKEN={made_up}", err=True)
    typer.echo(f"serving at {url} (Ctrl-C ends it)", err=json)
    print_result({"url": url}, json)
    sys.stdout.flush()  # whoever started it waits for the address


def _ready(url: str, open_browser: bool, json: bool) -> None:
    import webbrowser

    typer.echo(f"playing at {url} (Ctrl-C ends it)", err=json)
    if open_browser:
        webbrowser.open(url)
