"""The pure parts of benchmarks/generation.py, and the job that its sides are given."""

from __future__ import annotations

import importlib
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
generation = importlib.import_module("generation")
cases = importlib.import_module("cases")


def test_its_job_is_the_case_s_with_rows_for_all_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    jobs: list[Any] = []

    def measure(job: Any, options: Any) -> None:
        jobs.append(job)
        raise generation.BenchmarkError("the job is enough")

    monkeypatch.setattr(generation, "measure", measure)
    monkeypatch.setattr(generation.os, "sched_setaffinity", lambda *_: None)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    assert generation.main(["--case", "a", "--steps", "3", "--rounds", "2", "--threads", "1"]) == 1
    [job] = jobs
    assert job.case == cases.CASES["a"] and job.threads == 1
    assert job.num_rows >= (2 + 3 * 2) * job.case.groups  # two batches warm up


def test_rates_are_tokens_over_seconds_and_the_loop_s_over_the_others() -> None:
    seconds = {"loop": (4.0, 2.0, 8.0), "raw": (2.0, 2.0, 4.0), "plain": (8.0, 5.0, 8.0)}
    sides = {
        name: dict(zip(("median", "min", "cpu_seconds"), times, strict=True))
        for name, times in seconds.items()
    }
    found = generation.compared(sides, num_tokens=40)
    assert found["tokens_per_s"]["loop"] == {"median": 10.0, "min": 20.0, "cpu": 5.0}
    assert found["of_raw"] == {"median": 0.5, "min": 1.0, "cpu": 0.5}
    assert found["of_plain"] == {"median": 2.0, "min": 2.5, "cpu": 1.0}
