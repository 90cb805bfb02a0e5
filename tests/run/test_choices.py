"""What ranks and engines chose is printed, kept for the summary, and an event where it is slower."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from builders import make_config
from rich.console import Console

from vlrl.choices import MachineChoice
from vlrl.run import summary as summary_file
from vlrl.run.engines import Engines, _transport_choice
from vlrl.run.summary import write_summary
from vlrl.tracking.clock import Clock
from vlrl.tracking.console import TrainConsole
from vlrl.tracking.events import EVENTS_FILE, Events

FLEX = MachineChoice.as_wanted("attention", "flex", "tried on this GPU")
EAGER = MachineChoice("token steps", "CUDA graphs", "eager", "generator.enforce_eager=true", "20 ms, not 7")


def test_a_slower_way_is_told_kept_and_found_by_tools(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    config = make_config(run={"dir": str(tmp_path)})
    config.run_dir.mkdir(parents=True)
    engines: Any = Engines.__new__(Engines)
    engines.choices = []
    engines._events = Events(config.run_dir, TrainConsole("run", 1, console=Console(width=500)))
    engines._tell([FLEX, EAGER])
    shown = capsys.readouterr().out
    assert str(FLEX) in shown and str(EAGER) in shown
    [event] = map(json.loads, (config.run_dir / EVENTS_FILE).read_text().splitlines())
    assert (event["event"], event["text"]) == ("slower_path", str(EAGER))
    monkeypatch.setattr(summary_file, "device_name", lambda: "a CPU")  # asks Ray
    summary = write_summary(config, Clock(), engines.choices, {})
    written = json.loads((config.run_dir / "summary.json").read_text())
    assert written["choices"] == summary["choices"]
    assert [choice["used"] for choice in written["choices"]] == ["flex", "eager"]
    assert written["choices"][1] == {
        "name": "token steps",
        "wanted": "CUDA graphs",
        "used": "eager",
        "reason": "generator.enforce_eager=true",
        "cost": "20 ms, not 7",
    }


def test_weights_that_cannot_go_through_shared_memory_are_a_slower_way() -> None:
    [choice] = _transport_choice("broadcast")
    assert choice.is_slower and "a dead engine cannot be replaced" in choice.cost
    assert _transport_choice("shared_memory") == []
