"""What happened to a run besides its steps is told, and kept."""

from __future__ import annotations

import io
import json
from pathlib import Path

from rich.console import Console

from vlrl.tracking.console import TrainConsole
from vlrl.tracking.events import EVENTS_FILE, Events


def test_events_are_told_and_added_to_what_is_there(tmp_path: Path) -> None:
    shown, run_dir = io.StringIO(), tmp_path / "run"
    with TrainConsole("run", 1, console=Console(file=shown)) as console:
        events = Events(run_dir, console)
        assert not run_dir.exists()
        events.tell("checkpoint_damaged", "first\nof two lines")
        Events(run_dir, console).tell("trainer_died", "second")
    assert "first" in shown.getvalue() and "second" in shown.getvalue()
    kept = [json.loads(line) for line in (run_dir / EVENTS_FILE).read_text().splitlines()]
    assert [(e["event"], e["text"]) for e in kept] == [
        ("checkpoint_damaged", "first\nof two lines"),
        ("trainer_died", "second"),
    ]
    assert all(e["time"].endswith("+00:00") for e in kept)
