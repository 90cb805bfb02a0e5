"""`vlrl`: the commands and what they share: errors without tracebacks, exit codes, JSON results.

Exit codes: 0 done, 1 failed, 2 wrong usage or config, 130 interrupted.
"""

from __future__ import annotations

import json
import sys
import traceback

import click
import typer
from rich.console import Console
from rich.text import Text

from vlrl import __version__
from vlrl.cli import config, doctor, evaluate, quickstart, report, rollout, sft, train
from vlrl.errors import Interrupted, VlrlError

app = typer.Typer(
    name="vlrl",
    help="Train vision-language models with reinforcement learning.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)
app.command("train")(train.command)
app.command("sft")(sft.command)
app.command("eval")(evaluate.command)
app.command("rollout")(rollout.command)
app.command("report")(report.command)
app.command("doctor")(doctor.command)
app.command("quickstart")(quickstart.command)
app.add_typer(config.app, name="config")


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


def main() -> None:
    """Run a command; a failure is one message on stderr, and with --debug a traceback as well."""
    arguments = sys.argv[1:]
    debug = "--debug" in arguments
    as_json = "--json" in arguments
    arguments = [a for a in arguments if a != "--debug"]
    try:
        code = app(arguments, standalone_mode=False) or 0
    except click.ClickException as error:
        error.show()
        code = 2
    except (KeyboardInterrupt, click.Abort):
        code = _fail(Interrupted("interrupted; what was not checkpointed is lost"), as_json, debug)
    except VlrlError as error:
        code = _fail(error, as_json, debug)
    sys.exit(code)


def _fail(error: VlrlError, as_json: bool, debug: bool) -> int:
    if debug:
        traceback.print_exception(error)
    if as_json:
        print(json.dumps({"error": str(error), "kind": type(error).__name__}))
    Console(stderr=True).print(Text.assemble(("error: ", "bold red"), str(error)), soft_wrap=True)
    return error.exit_code

