"""The order in which trainer and engines start, by recording ones."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from vlrl.run import engines
from vlrl.run.engines import Engines
from vlrl.tracking.clock import Clock


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the two are asked, in order."""
    noted: list[str] = []

    class Recording:
        def __init__(self, *_: Any, **__: Any) -> None:
            self.name = type(self).__name__.lower()
            noted.append(f"{self.name}: processes")

        def __getattr__(self, method: str) -> Any:
            def note() -> Any:
                noted.append(f"{self.name}: {method}")
                return [] if method == "choices" else 1.0

            return note

    monkeypatch.setattr(engines, "Trainer", type("Trainer", (Recording,), {}))
    monkeypatch.setattr(engines, "VllmPolicy", type("Engine", (Recording,), {}))
    return noted


def start(*, share_gpus: bool) -> None:
    run = Engines.__new__(Engines)  # the constructor would start Ray
    run.config = SimpleNamespace(run_dir=Path(), generator=SimpleNamespace(servers=[]))  # type: ignore[assignment]
    run.reservation = run._events = None  # type: ignore[assignment]
    run._processor = SimpleNamespace(banned_token_ids=[])  # type: ignore[assignment]
    run._stack, run.choices, run._train, run._generate = ExitStack(), [], True, True
    run._share_gpus = share_gpus
    run.start(Clock())


def test_side_by_side_both_load_at_once(calls: list[str]) -> None:
    start(share_gpus=False)
    assert calls.index("engine: start") < calls.index("trainer: wait_ready")
    assert "trainer: sleep" not in calls


def test_on_shared_gpus_an_engine_imports_meanwhile_and_loads_when_the_trainer_has_given_its_memory_up(
    calls: list[str],
) -> None:
    start(share_gpus=True)
    assert calls.index("engine: processes") < calls.index("trainer: wait_ready")
    assert calls.index("trainer: sleep") < calls.index("engine: wait_ready")
    assert "engine: start" not in calls, "waiting for it starts it"
