"""`vlrl algorithm list|show|check`."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from vlrl.cli.shared import DebugOption, JsonOption, options_of, print_result, print_verdict

app = typer.Typer(help="Presets and functions of algorithms; check one of your own.", no_args_is_help=True)


@app.command("list")
def list_command(json: JsonOption = False, debug: DebugOption = False) -> None:
    """Every preset and function that a config may name: `vlrl algorithm list --json`."""
    from vlrl.check.catalog.algorithms import list_algorithms, show_list

    found = list_algorithms()
    if not json:
        show_list(found, Console(highlight=False))
    print_result(found, json)


@app.command("show")
def show_command(
    name: Annotated[str, typer.Argument(help="A preset, or a function of any kind.")],
    json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """What a preset sets, and what a function computes and takes: `vlrl algorithm show gspo`."""
    from vlrl.check.catalog.algorithms import describe, show_one

    described = describe(name)
    if not json:
        show_one(described, Console(highlight=False))
    print_result(described, json)


@app.command("check")
def check_command(
    name: Annotated[
        str,
        typer.Argument(
            help="A registered loss, advantage, correction or selection, or path/to/file.py:function."
        ),
    ],
    option: Annotated[
        list[str] | None, typer.Option("--option", help="An option of it: key=value; may be repeated.")
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option(
            "--kind",
            help="What it is: losses (of a file by default), advantages, corrections or selections.",
        ),
    ] = None,
    json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Try a function on all that trainers do with it: `vlrl algorithm check ./my_loss.py:loss`.

    Exit code 0 if it keeps the contract; 1 if it does not: a loss that is not finite, has another gradient
    than its value, or depends on how tokens are ordered, packed or cut into slices.
    """
    from vlrl.check.algorithms.check import verdict
    from vlrl.check.algorithms.kinds import check_function
    from vlrl.check.rewards.show import show_checks, show_verdict

    result = check_function(name, options_of(option, "--option "), kind)
    console = Console(stderr=json, highlight=False)
    console.print(Text(name, style="bold"), soft_wrap=True)
    show_checks(result["checks"], console)
    show_verdict(result["ok"], verdict(result), console)
    print_verdict(result, json)
