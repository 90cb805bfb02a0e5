"""`vlrl doctor`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vlrl.cli.shared import DebugOption, JsonOption, print_result
from vlrl.machine.result import CheckResult, Status

MARKS: dict[Status, tuple[str, str]] = {
    "ok": ("✓", typer.colors.GREEN),
    "warning": ("!", typer.colors.YELLOW),
    "failed": ("✗", typer.colors.RED),
}


def command(
    run_dir: Annotated[Path, typer.Option(help="Folder that runs will be written to.")] = Path("runs"),
    json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Check this machine, and print what to fix: `vlrl doctor --run-dir /data/runs`.

    ✓: works, !: works with a limitation, ✗: must be fixed before training (exit code 1).
    """
    from vlrl.cli.checks import run_checks

    checks = run_checks(run_dir)
    for check in checks:
        typer.echo(_line(check), err=json)
    failed = any(check.status == "failed" for check in checks)
    print_result({"ok": not failed, "checks": [check._asdict() for check in checks]}, json)
    if failed:
        raise typer.Exit(1)


def _line(check: CheckResult) -> str:
    mark, colour = MARKS[check.status]
    remedy = f" → {check.remedy}" if check.remedy else ""
    return f"{typer.style(mark, colour)} {check.name:<13} {check.found}{remedy}"
