"""run.log: one line of JSON for each of what processes say."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from vlrl.process.output_files import MAX_BYTES, output_files, read_on
from vlrl.scoring.compose import RewardFailure
from vlrl.tracking import run_log
from vlrl.tracking.console import TrainConsole
from vlrl.tracking.events import Events
from vlrl.tracking.run_log import LOG_FILE, RunLog


def lines(run_dir: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run_dir / LOG_FILE).read_text().splitlines()]


def test_a_line_says_who_where_and_when(tmp_path: Path) -> None:
    log = RunLog(tmp_path, "host-1")
    log.write("half a pair: \ud83d", process="rank 1", node="host-2", step=3, level="error")
    log.write("later")
    log.close()
    log.write("too late")
    first, second = lines(tmp_path)
    assert first.pop("time").endswith("+00:00")
    assert first == {
        **{"run": tmp_path.name, "process": "rank 1", "node": "host-2", "step": 3, "sample": None},
        **{"level": "error", "event": None, "message": "half a pair: \ud83d"},
    }
    assert (second["process"], second["node"], second["message"]) == ("driver", "host-1", "later")


def test_a_line_names_the_sample_that_its_message_names(tmp_path: Path) -> None:
    log = RunLog(tmp_path, "host")
    failure = RewardFailure("judge", "it's row 7", "no answer")
    log.write(f"left out: {failure}; sample 'another'")
    log.write("Traceback: vlrl.errors.DataError: sample 'b/3' needs 900 tokens", process="worker 1")
    log.write("the first sample of three")
    log.close()
    assert [line["sample"] for line in lines(tmp_path)] == ["it's row 7", "b/3", None]


def test_a_large_file_makes_way_for_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_log, "MAX_BYTES", 1000)
    log = RunLog(tmp_path, "host")
    for number in range(20):
        log.write(str(number))
    log.close()
    assert lines(tmp_path)[-1]["message"] == "19"
    assert (tmp_path / LOG_FILE).stat().st_size < 1300 > (tmp_path / f"{LOG_FILE}.1").stat().st_size


def test_what_the_console_shows_is_heard_with_the_names_of_events(tmp_path: Path) -> None:
    heard = []
    console = TrainConsole("a", 3, console=Console(file=io.StringIO()))
    events = Events(tmp_path, console)
    console.hear = lambda text: heard.append((text, events.being_told.get(text, "")))
    console.phase("GRPO", 3)
    events.note("only said")
    events.tell("node_disk", "the disk is full")
    assert heard == [("GRPO …", ""), ("only said", ""), ("the disk is full", "node_disk")]
    assert events.counts == {"node_disk": 1} and not events.being_told


def test_output_is_read_by_whole_lines_and_goes_on(tmp_path: Path) -> None:
    file = tmp_path / "worker.err"
    file.write_bytes(b":job_id:01000000\n:actor_name:TrainerRank\nfirst\n\nsecond \xff\nhalf a")
    found = read_on({str(file): 0, str(tmp_path / "missing"): 5})
    size, said = found.pop(str(file))
    assert said == ["first", "second \\xff"] and not found
    with file.open("ab") as more:
        more.write(b" line\n")
    assert read_on({str(file): size})[str(file)][1] == ["half a line"]


def test_a_line_without_an_end_is_read_in_parts(tmp_path: Path) -> None:
    file = tmp_path / "worker.out"
    file.write_bytes(b"x" * (MAX_BYTES + 10))
    size, said = read_on({str(file): 0})[str(file)]
    assert size == MAX_BYTES and [len(line) for line in said] == [MAX_BYTES]
    assert read_on({str(file): size}) == {}


def test_the_outputs_of_this_process_are_files() -> None:
    assert all(Path(file).is_file() for file in output_files())
