"""Arguments and output that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vlrl.errors import ConfigError
from vlrl.process.json_stdout import print_json

if TYPE_CHECKING:
    from vlrl.config import Config

ConfigArgument = Annotated[Path, typer.Argument(help="YAML file, for instance configs/quickstart.yaml.")]
OverridesArgument = Annotated[
    list[str] | None, typer.Argument(help="Overrides: section.key=value …", metavar="[KEY=VALUE]…")
]
JsonOption = Annotated[
    bool, typer.Option("--json", help="Print one machine-readable result to stdout, and nothing else.")
]
DebugOption = Annotated[bool, typer.Option("--debug", help="Show tracebacks.")]
ResumeOption = Annotated[bool, typer.Option("--resume", help="Continue from the run's last checkpoint.")]


def read_config(path: Path, overrides: list[str] | None) -> Config:
    """The config that a command was given; a command that reads none is spared the import of all sections."""
    from vlrl.config import load_config

    return load_config(path, overrides or [])


def print_result(result: dict[str, Any], as_json: bool) -> None:
    """Print the machine-readable result to stdout, if it was asked for; it is all that stdout then holds."""
    if as_json:
        print_json(result)


def print_verdict(result: dict[str, Any], as_json: bool) -> None:
    """Print the result of a check, as `print_result` does.

    Raises:
        typer.Exit: with exit code 1 if the result is not ok.
    """
    print_result(result, as_json)
    if not result["ok"]:
        raise typer.Exit(1)


def options_of(given: list[str] | None, what: str) -> dict[str, Any]:
    """The options of key=value, values in YAML; a dot goes into a mapping, as in endpoint.model=x.

    Args:
        given: by the user.
        what: begins an error about one of them.

    Raises:
        ConfigError: for what is not key=value, or a value that is not YAML.
    """
    from vlrl.config.strict_yaml import load_value

    options: dict[str, Any] = {}
    for each in given or []:
        key, equals, text = each.partition("=")
        if not key or not equals:
            raise ConfigError(f"{what}{each!r} must be key=value")
        node = options
        *parents, leaf = key.split(".")
        for parent in parents:
            node = node.setdefault(parent, {})
            if not isinstance(node, dict):
                raise ConfigError(f"{what}{each!r}: {parent!r} was given a value before")
        node[leaf] = load_value(text, f"{what}{each!r}")
    return options
