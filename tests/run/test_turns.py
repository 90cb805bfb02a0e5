"""The order in which trainer and engines have the GPUs that they share, by recording actors."""

from __future__ import annotations

from pathlib import Path

import pytest

from vlrl.run.turns import Turns
from vlrl.weights.manifest import Manifest, plan_segment

MANIFEST = plan_segment(Path("unused"), [])


class Device:
    """A GPU that only one of the two may use at a time."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.awake = {"engines"}

    def change(self, who: str, *, awake: bool) -> None:
        self.awake = self.awake | {who} if awake else self.awake - {who}
        assert len(self.awake) <= 1, "two processes would fill the GPU"


class RecordingTrainer:
    def __init__(self, device: Device) -> None:
        self.device = device
        self.manifest: Manifest = MANIFEST

    def sleep(self) -> None:
        self.device.change("trainer", awake=False)
        self.device.calls.append("trainer sleeps")

    def wake(self) -> None:
        self.device.change("trainer", awake=True)
        self.device.calls.append("trainer wakes")

    def write_weights(self, *, checked: bool = False) -> None:
        self.device.calls.append("checked weights written" if checked else "weights written")


class RecordingEngines:
    def __init__(self, device: Device) -> None:
        self.device = device

    def sleep(self) -> None:
        self.device.change("engines", awake=False)
        self.device.calls.append("engines sleep")

    def load_weights(self, manifest: Manifest, version: int) -> float:
        self.device.change("engines", awake=True)
        self.device.calls.append(f"engines load {version}")
        return 0.5


def turns_of(device: Device, *, shared: bool) -> Turns:
    return Turns(RecordingTrainer(device), RecordingEngines(device), shared=shared)


def test_a_step_is_sleep_train_sync_wake() -> None:
    device = Device()
    turns = turns_of(device, shared=True)
    turns.to_engines()
    assert device.calls == []  # they had it already
    turns.to_trainer()
    assert turns.update(1) == 0.5
    assert device.calls == [
        "engines sleep",
        "trainer wakes",
        "checked weights written",
        "trainer sleeps",
        "engines load 1",
    ]


def test_engines_that_slept_get_the_weights_they_had() -> None:
    """What a probe or a checkpoint wakes an engine with, which kept none at level 2, must be its own."""
    device = Device()
    turns = turns_of(device, shared=True)
    turns.update(3)
    device.calls.clear()
    turns.to_trainer()
    turns.to_trainer()
    turns.to_engines()
    turns.to_engines()
    assert device.calls == ["engines sleep", "trainer wakes", "trainer sleeps", "engines load 3"]


def test_with_gpus_of_their_own_nobody_sleeps() -> None:
    device = Device()
    turns = turns_of(device, shared=False)
    turns.to_trainer()
    turns.to_engines()
    turns.update(1)
    assert device.calls == ["checked weights written", "engines load 1"]


def test_the_first_update_and_those_that_are_asked_for_are_checked() -> None:
    device = Device()
    turns = turns_of(device, shared=False)
    for version, checked in ((1, False), (2, False), (3, True), (4, False)):
        turns.update(version, checked=checked)
    checks = [call.startswith("checked") for call in device.calls if call.endswith("written")]
    assert checks == [True, False, True, False]


@pytest.mark.parametrize("shared", [True, False])
def test_a_supervised_run_has_no_engines_to_wake(shared: bool) -> None:
    device = Device()
    device.awake = {"trainer"}
    turns = Turns(RecordingTrainer(device), None, shared=shared)
    turns.to_trainer()
    assert device.calls == []
