"""The pure parts of benchmarks/step_profile.py: what it counts for which phase and process."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

from vlrl.tracking.timeline import Span

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
step_profile = importlib.import_module("step_profile")

SPANS = [
    Span("trainer", "generate", 10.0, 11.0),
    Span("trainer", "train", 11.0, 13.0),
    Span("trainer", "sync", 13.5, 14.0),
]


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("ray::TrainerRank.step", "trainer"),
        ("ray::GeneratorActor", "engine"),
        ("python\0benchmarks/vlrl_step.py\0job.json", "driver"),
        ("ray::IDLE", "Ray"),
        ("/site-packages/ray/core/src/ray/gcs/gcs_server", "Ray"),
    ],
)
def test_a_process_is_named_by_its_command(command: str, name: str) -> None:
    assert step_profile.name_of(command) == name


def test_seconds_are_shared_among_the_phases_of_their_interval_and_none_is_lost() -> None:
    samples = [
        (10.0, {"trainer": (5.0, 100)}),
        (10.5, {"trainer": (5.0, 100), "engine": (1.0, 7)}),
        (11.5, {"trainer": (6.0, 120), "engine": (2.0, 7)}),
        (14.5, {"trainer": (9.0, 150), "engine": (2.0, 7)}),
    ]
    found = step_profile.by_phase(samples, SPANS, num_steps=2)
    seconds = {phase: {name: one["cpu_s"] for name, one in of.items()} for phase, of in found.items()}
    assert seconds["generate"] == pytest.approx({"trainer": 0.25, "engine": 0.25})
    assert seconds["train"] == pytest.approx({"trainer": 0.25 + 0.75, "engine": 0.25})
    assert seconds["sync"] == pytest.approx({"trainer": 0.25, "engine": 0.0})
    assert seconds["rest"] == pytest.approx({"trainer": 0.5, "engine": 0.0})
    total = sum(one["cpu_s"] for of in found.values() for name, one in of.items() if name == "trainer")
    faults = sum(one["page_faults"] for of in found.values() for one in of.values())
    assert (total, faults) == pytest.approx((2.0, 25.0))
