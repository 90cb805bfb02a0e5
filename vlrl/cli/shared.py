"""Arguments and output that several commands share."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

ConfigArgument = Annotated[Path, typer.Argument(help="YAML file, for instance configs/quickstart.yaml.")]
OverridesArgument = Annotated[
    list[str] | None, typer.Argument(help="Overrides: section.key=value …", metavar="[KEY=VALUE]…")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print a machine-readable result as the last line.")]
DebugOption = Annotated[bool, typer.Option("--debug", help="Show tracebacks.")]
ResumeOption = Annotated[bool, typer.Option("--resume", help="Go on from the run's last checkpoint.")]


def print_result(result: dict[str, Any], as_json: bool) -> None:
    """Print the machine-readable result as the last line of stdout, if it was asked for."""
    if as_json:
        print(json.dumps(result))
