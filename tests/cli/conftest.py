"""Running a command inside the test's process: imports are paid once."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer.main
from warm_audit import AuditContext

from vlrl.cli.main import main
from vlrl.process import json_stdout


@dataclass(frozen=True)
class Result:
    """What a command left: exit code, stdout, stderr."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """The machine-readable result, the last line of stdout."""
        return dict(json.loads(self.out.strip().splitlines()[-1]))


Vlrl = Callable[..., Result]
whole_command = cache(typer.main.get_command)
"""What typer makes of all functions and their options, which takes longer than most commands."""


@pytest.fixture
def vlrl(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path) -> Vlrl:
    """`vlrl("train", file, "num_steps=3")`, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setattr("typer.main.get_command", whole_command)
    monkeypatch.setattr("vlrl.check.data.workers.get_context", AuditContext)

    def run(*arguments: object) -> Result:
        monkeypatch.setattr(sys, "argv", ["vlrl", *map(str, arguments)])
        capfd.readouterr()
        stdout = os.dup(1)  # a command with --json keeps it until its process ends
        try:
            with pytest.raises(SystemExit) as stopped:
                main()
        finally:
            os.dup2(stdout, 1)
            os.close(stdout)
            json_stdout._stdout = None  # by monkeypatch the next test would get this one's back
        captured = capfd.readouterr()
        return Result(int(stopped.value.code or 0), captured.out, captured.err)

    return run
