"""`vlrl agent`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vlrl.cli.shared import DebugOption, JsonOption, options_of, print_result
from vlrl.errors import ConfigError

CONFIRM = ("auto", "always", "never")


def command(
    model: Annotated[
        str, typer.Argument(help="What `vlrl serve` takes, or the address of a server (http…/v1).")
    ],
    options: Annotated[
        list[str] | None,
        typer.Argument(help="The environment's options: key=value …", metavar="[KEY=VALUE]…"),
    ] = None,
    env: Annotated[str, typer.Option(help="A registered environment, or path/to/file.py:Class.")] = "gui/emu",
    task: Annotated[
        list[str] | None, typer.Option(help="An option of the task: key=value; may be repeated.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the episode.")] = 0,
    max_turns: Annotated[int, typer.Option("--max-turns", min=1, help="Most actions.")] = 50,
    max_images: Annotated[int, typer.Option(min=1, help="Most images of a request to the server.")] = 64,
    confirm: Annotated[
        str,
        typer.Option(
            help="Ask before each action: always, never, or auto: where an action cannot be taken back, "
            "which is everywhere but in an emulator."
        ),
    ] = "auto",
    temperature: Annotated[float, typer.Option(min=0, help="0 is greedy, as in `vlrl eval`.")] = 0.0,
    out: Annotated[Path, typer.Option(help="Folder of the recording.")] = Path("recordings"),
    page: Annotated[
        bool,
        typer.Option("--page/--no-page", help="Serve a live page to this machine, or ask in the terminal."),
    ] = True,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Of the page; 0: any free one.")] = 0,
    open_browser: Annotated[bool, typer.Option("--open/--no-open", help="Open the page.")] = True,
    json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Let a model act in an environment, on a live page: `vlrl agent runs/gui --env gui/emu --seed 3`.

    The page pauses and stops it. The episode is recorded: `vlrl env replay recordings/recording.jsonl`.
    """
    from vlrl.chat.agent_session import AgentOptions, work
    from vlrl.chat.opened import opened

    if confirm not in CONFIRM:
        raise ConfigError(f"--confirm {confirm}: give {', '.join(CONFIRM)}")
    chosen = AgentOptions(
        env=env,
        options=options_of(options, "option "),
        task=options_of(task, "--task "),
        seed=seed,
        max_turns=max_turns,
        confirm=confirm,
        fields={"temperature": temperature},
        out=out,
        port=port if page else None,
        open_browser=open_browser,
    )

    def tell(words: str) -> None:
        typer.echo(words, err=True)

    with opened(model, ["--max-images", str(max_images)], tell) as endpoint:
        print_result(work(endpoint, chosen, tell), json)
