"""The benchmark of asynchronous training: its limit is one, and it runs, small."""

from __future__ import annotations

import heapq
import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlrl.rollout.buffer import Buffer, BufferLimits

LIMIT_FILE = Path(__file__).parent.parent.parent / "benchmarks" / "async_limit.py"


def load_limit() -> ModuleType:
    spec = importlib.util.spec_from_file_location("async_limit", LIMIT_FILE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


limit = load_limit()


def seconds_of(waits_s: list[list[int]], step_s: int, *, pipeline_depth: int, max_staleness: int) -> float:
    """How long the real buffer takes where only waiting takes time; [num_batches][batch_size]."""
    batch_size, num_batches = len(waits_s[0]), len(waits_s)
    buffer: Buffer[str] = Buffer(BufferLimits(batch_size, pipeline_depth, max_staleness))
    running: list[tuple[float, int]] = []
    now = 0.0

    def admit() -> None:
        for ticket in buffer.admit():
            batch, place = divmod(ticket.position, batch_size)
            wait_s = waits_s[batch][place] if batch < num_batches else 10**6
            heapq.heappush(running, (now + wait_s, ticket.position))

    for step in range(num_batches):
        while buffer.cut() is None:
            admit()
            end, position = heapq.heappop(running)
            now = max(now, end)
            buffer.finish(position, "drawn")
        admit()
        now += step_s
        buffer.advance(step + 1)
    return now


@given(
    st.integers(1, 3).flatmap(
        lambda size: st.lists(
            st.lists(st.integers(0, 20), min_size=size, max_size=size), min_size=1, max_size=7
        )
    ),
    st.integers(0, 9),
    st.integers(1, 4),
    st.integers(0, 4),
)
def test_the_path_is_what_the_buffer_takes_where_only_waiting_takes_time(
    waits_s: list[list[int]], step_s: int, depth: int, staleness: int
) -> None:
    options: dict[str, Any] = {"pipeline_depth": depth, "max_staleness": staleness}
    path_s = limit.path_seconds([max(of_batch) for of_batch in waits_s], step_s, **options)
    assert path_s == seconds_of(waits_s, step_s, **options)


def test_taking_turns_is_the_sum_of_all() -> None:
    assert limit.path_seconds([3, 5, 2], 1, pipeline_depth=1, max_staleness=0) == 13
    assert limit.path_seconds([3, 5, 2], 1, pipeline_depth=1, max_staleness=1) == 3 + 5 + 2 + 1
    assert limit.least_seconds(4.0, 10.0, 2) == 5.0


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_it_prints_its_figures_and_draws(root: Path, tmp_path: Path) -> None:
    small = ["--steps", "3", "--rounds", "1", "--prompts", "2", "--turns", "2", "--most-s", "1"]
    command = [sys.executable, root / "benchmarks" / "async.py", *small, "--json"]
    child = subprocess.run(
        [*command, "--image", tmp_path / "a.png"], capture_output=True, text=True, check=True
    )
    found = json.loads(child.stdout)
    assert found["limit"] > 1
    assert found["fraction_of_limit"] == pytest.approx(found["speedup"] / found["limit"], rel=0.02)
    assert found["fraction_of_limit"] <= 1  # nothing is quicker than the least time possible
    assert found["sync_path_s"] <= found["sync_s"][0]
    assert "never retrieved" not in child.stderr
    assert (tmp_path / "a.png").stat().st_size > 0
