"""`vlrl`: the commands and what they share: errors without tracebacks, exit codes, JSON results.

Exit codes: 0 done, 1 failed, 2 wrong usage or config, 130 interrupted.
"""

from __future__ import annotations

import traceback
from typing import Any

import typer
from rich.console import Console
from rich.text import Text

from vlrl import __version__
from vlrl.cli.commands import (
    algorithm,
    config,
    data,
    doctor,
    env,
    evaluate,
    init,
    plan,
    quickstart,
    report,
    reward,
    rollout,
    rollouts,
    view,
)
from vlrl.cli.commands.experiments import compare, runs, sweep
from vlrl.cli.commands.models import agent, chat, export, models, serve
from vlrl.cli.commands.training import dpo, engine, raft, reward_model, sft, train
from vlrl.cli.failures import explained
from vlrl.errors import ConfigError, Interrupted, VlrlError
from vlrl.process.json_stdout import claim_stdout, print_json

# Newer typers carry a click of their own, whose exceptions are not those of the package click.
UsageError: Any = next(c for c in typer.BadParameter.__mro__ if c.__name__ == "ClickException")

app = typer.Typer(
    name="vlrl",
    help="Train vision-language models with reinforcement learning.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)
app.command("init")(init.command)
app.command("train")(train.command)
app.command("sft")(sft.command)
app.command("dpo")(dpo.command)
app.command("reward-model")(reward_model.command)
app.command("raft")(raft.command)
app.command("engine")(engine.command)
app.command("eval")(evaluate.command)
app.command("export")(export.command)
app.add_typer(models.app, name="models")
app.command("serve")(serve.command)
app.command("chat")(chat.command)
app.command("agent")(agent.command)
app.command("rollout")(rollout.command)
app.command("rollouts")(rollouts.command)
app.add_typer(runs.app, name="runs")
app.command("compare")(compare.command)
app.command("sweep")(sweep.command)
app.command("report")(report.command)
app.command("view")(view.command)
app.command("plan")(plan.command)
app.command("doctor")(doctor.command)
app.command("quickstart")(quickstart.command)
app.add_typer(config.app, name="config")
app.add_typer(data.app, name="data")
app.add_typer(reward.app, name="reward")
app.add_typer(env.app, name="env")
app.add_typer(algorithm.app, name="algorithm")


def _show_version(value: bool) -> None:
    if value:
        typer.echo(f"vlrl {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(
        False, "--version", callback=_show_version, is_eager=True, help="Print the version and exit."
    ),
) -> None:
    """Train vision-language models with reinforcement learning."""


def run(arguments: list[str]) -> int:
    """Run a command and return its exit code; a failure is one message on stderr.

    With --debug there is a traceback as well.
    """
    debug, as_json = "--debug" in arguments, "--json" in arguments
    if as_json:
        claim_stdout()
    try:
        code = app([a for a in arguments if a != "--debug"], prog_name="vlrl", standalone_mode=False) or 0
        if code == Interrupted.exit_code:  # typer turns a KeyboardInterrupt into this
            raise KeyboardInterrupt
    except (KeyboardInterrupt, typer.Abort):
        return _fail(Interrupted("interrupted"), as_json)
    except Exception as error:
        if isinstance(error, UsageError):
            error.show()
            return _fail(ConfigError(error.format_message()), as_json, shown=True)
        code = _fail(explained(error), as_json, shown=False)
        if debug:
            traceback.print_exception(error)
    return int(code)


def _fail(error: VlrlError, as_json: bool, *, shown: bool = False) -> int:
    if as_json:
        print_json({"error": str(error), "kind": type(error).__name__})
    if not shown:
        Console(stderr=True).print(Text.assemble(("error: ", "bold red"), str(error)), soft_wrap=True)
    return error.exit_code
