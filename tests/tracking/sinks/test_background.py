"""A sink that fails or hangs never stops or slows a run."""

import math
import threading
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import pytest

from vlrl.config.options import LoggingConfig
from vlrl.tracking.sinks import MetricSinks, all_sinks, read_metrics
from vlrl.tracking.sinks.background import BackgroundSink
from vlrl.tracking.sinks.rollout_rows import RolloutRow

PLAIN = LoggingConfig(tensorboard=False)
SOON_S = 10.0


class FaultySink:
    """Raises, hangs until `let_go`, or is slow in one of its methods."""

    name = "the faulty sink"

    def __init__(self, *, fails_in: str = "", hangs_in: str = "", error: BaseException | None = None) -> None:
        self.fails_in, self.hangs_in, self.error = fails_in, hangs_in, error or OSError("no route to host")
        self.steps: list[int] = []
        self.let_go, self.is_closed = threading.Event(), threading.Event()

    def _act(self, method: str) -> None:
        if method == self.fails_in:
            raise self.error
        if method == self.hangs_in:
            self.let_go.wait()

    def open(self) -> None:
        self._act("open")

    def log(self, step: int, numbers: Mapping[str, float]) -> None:
        self._act("log")
        self.steps.append(step)

    def log_rollouts(self, step: int, rows: Sequence[RolloutRow]) -> None:
        self._act("log_rollouts")

    def close(self) -> None:
        self._act("close")
        self.is_closed.set()


def log_steps(sinks: MetricSinks, steps: range) -> float:
    """Log steps; the seconds of the slowest."""
    slowest = 0.0
    for step in steps:
        begin = time.perf_counter()
        sinks.log(step, {"reward/mean": step / 10})
        slowest = max(slowest, time.perf_counter() - begin)
    return slowest


@pytest.fixture
def quick_close(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(all_sinks, "CLOSE_S", 0.3)


@pytest.mark.parametrize("method", ["open", "log", "close"])
@pytest.mark.parametrize("error", [OSError("no route to host"), SystemExit(1)], ids=["raises", "exits"])
def test_a_sink_that_raises_is_told_once_and_left_out(
    tmp_path: Path, method: str, error: BaseException
) -> None:
    told: list[tuple[str, str]] = []
    bad, good = FaultySink(fails_in=method, error=error), FaultySink()
    with MetricSinks(tmp_path, PLAIN, tell=lambda *event: told.append(event), more=(bad, good)) as sinks:
        log_steps(sinks, range(50))
    ((event, text),) = told
    assert event == "sink_failed" and type(error).__name__ in text and "metrics.jsonl has all" in text
    assert bad.steps == (list(range(50)) if method == "close" else [])
    assert good.steps == list(range(50)) and good.is_closed.is_set()
    assert len(read_metrics(tmp_path / "metrics.jsonl")) == 50


@pytest.mark.usefixtures("quick_close")
@pytest.mark.parametrize("method", ["open", "log", "close"])
def test_a_sink_that_hangs_stops_neither_the_run_nor_its_end(tmp_path: Path, method: str) -> None:
    told: list[tuple[str, str]] = []
    bad, good = FaultySink(hangs_in=method), FaultySink()
    sinks = MetricSinks(tmp_path, PLAIN, tell=lambda *event: told.append(event), more=(bad, good))
    slowest, begin = log_steps(sinks, range(50)), time.monotonic()
    sinks.close()
    assert slowest < 0.2 and time.monotonic() - begin < SOON_S
    assert [event for event, _ in told] == ["sink_hangs"]
    assert good.steps == list(range(50)) and good.is_closed.is_set()
    assert len(read_metrics(tmp_path / "metrics.jsonl")) == 50
    bad.let_go.set()


def test_what_wakes_up_after_the_end_takes_nothing_more(tmp_path: Path) -> None:
    told: list[tuple[str, str]] = []
    sink = FaultySink(hangs_in="log")
    background = BackgroundSink(sink, lambda *event: told.append(event))
    for step in range(3):
        background.put(partial(_log, step))
    background.end()
    background.join(time.monotonic() + 0.1)
    sink.let_go.set()
    assert sink.is_closed.wait(SOON_S)
    assert sink.steps == [0] and len(told) == 1


def test_a_slow_sink_loses_its_oldest_entries(tmp_path: Path) -> None:
    told: list[tuple[str, str]] = []
    sink = FaultySink(hangs_in="open")
    background = BackgroundSink(sink, lambda *event: told.append(event), max_waiting=4)
    for step in range(10):
        background.put(partial(_log, step))
    sink.let_go.set()
    background.end()
    background.join(time.monotonic() + SOON_S)
    assert sink.steps == [6, 7, 8, 9]
    assert [event for event, _ in told] == ["sink_slow", "sink_slow"] and "6 entries" in told[1][1]


def test_an_event_for_which_the_disk_has_no_room_stops_nothing(tmp_path: Path) -> None:
    def tell(event: str, text: str) -> None:
        raise OSError("No space left on device")

    with MetricSinks(tmp_path, PLAIN, tell=tell, more=(FaultySink(fails_in="log"),)) as sinks:
        log_steps(sinks, range(5))
    assert len(read_metrics(tmp_path / "metrics.jsonl")) == 5


def test_sinks_get_numbers_that_are_not_finite(tmp_path: Path) -> None:
    class Keeping(FaultySink):
        def log(self, step: int, numbers: Mapping[str, float]) -> None:
            assert math.isnan(numbers["policy/entropy"])
            super().log(step, numbers)

    sink = Keeping()
    with MetricSinks(tmp_path, PLAIN, more=(sink,)) as sinks:
        sinks.log(0, {"policy/entropy": math.nan})
    assert sink.steps == [0]


def _log(step: int, sink: FaultySink) -> None:
    sink.log(step, {})
