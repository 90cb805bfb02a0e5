"""`vlrl config show|schema`."""

from __future__ import annotations

import json as jsonlib
from typing import Annotated

import typer

from vlrl.cli.shared import (
    ConfigArgument,
    DebugOption,
    JsonOption,
    OverridesArgument,
    print_result,
    read_config,
)

app = typer.Typer(help="Show options and configs.", no_args_is_help=True)


@app.command("show")
def show(
    config: ConfigArgument,
    overrides: OverridesArgument = None,
    json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Print a config with its defaults and overrides: `vlrl config show configs/quickstart.yaml`."""
    import yaml

    tree = read_config(config, overrides).model_dump(mode="json")
    print_result(tree, json)
    if not json:
        typer.echo(yaml.safe_dump(tree, sort_keys=False))


@app.command("schema")
def schema(
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print docs/reference/options.md instead.")
    ] = False,
    json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Print every option's meaning, type and default, as JSON Schema: `vlrl config schema > schema.json`."""
    if markdown:
        from vlrl.cli.reference.options import options_page

        typer.echo(options_page(), nl=False)
        return
    from vlrl.config import Config

    tree = Config.model_json_schema()
    print_result(tree, json)
    if not json:
        typer.echo(jsonlib.dumps(tree, indent=2))
