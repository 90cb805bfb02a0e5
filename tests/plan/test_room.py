"""`vlrl train` asks whether there is room before engines start, offline, and says what would help."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from builders import make_config, make_sample

from vlrl.config import Config
from vlrl.errors import ResourceError
from vlrl.plan.predict import GIB, PlannedMachine
from vlrl.plan.room import prompts_of, require_room, this_machine
from vlrl.types import EnvTask

GPU = PlannedMachine("cuda", 64 * GIB, 4e14)


def three_billion(check: str = "error", **sections: Any) -> Config:
    config = make_config("Qwen/Qwen2.5-VL-3B-Instruct", run={"check_memory": check}, **sections)
    config.model.dtype = "bfloat16"
    return config


def told(config: Config, machine: PlannedMachine = GPU, *, engine: bool = True) -> list[str]:
    notes: list[str] = []
    require_room(config, [make_sample()], notes.append, engine=engine, machine=machine)
    return notes


def test_a_run_that_cannot_fit_is_refused_with_the_remedy() -> None:
    with pytest.raises(ResourceError) as caught:
        told(three_billion())
    words = str(caught.value)
    for needed in (
        "does not fit in the 64.00 GiB of one GPU",
        "lora.rank=32",
        "trainer.offload_optimizer=true",
    ):
        assert needed in words
    assert "run.check_memory=warn" in words


def test_it_can_be_a_warning_or_skipped() -> None:
    assert "does not fit" in " ".join(told(three_billion("warn")))
    assert told(three_billion("skip")) == []


def test_what_fits_says_nothing(tiny_model: Path) -> None:
    assert told(make_config(tiny_model), PlannedMachine("cpu", 64 * GIB, 1e11)) == []
    assert told(make_config(tiny_model), PlannedMachine("cpu", 64 * GIB, 1e11), engine=False) == []


def test_a_little_too_much_is_a_warning(tiny_model: Path) -> None:
    """The prediction is right to some per cent, so the edge is no error."""
    config = make_config(tiny_model)
    with pytest.raises(ResourceError):
        told(config, PlannedMachine("cpu", GIB, 1e11))
    from vlrl.plan.predict import predict

    needed = predict(config, prompts_of([make_sample()], config), PlannedMachine("cpu", 0, 1e11)).needed_bytes
    assert "does not fit" in told(config, PlannedMachine("cpu", int(0.97 * needed), 1e11))[0]


def test_models_of_unknown_shape_and_clusters_are_not_checked() -> None:
    assert told(make_config("nobody/nothing")) == []
    assert told(three_billion(ray={"address": "auto"})) == []


def test_a_full_disk_is_told_before(tiny_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vlrl.plan.room.free_bytes", lambda folder: 1000)
    (note,) = told(make_config(tiny_model), PlannedMachine("cpu", 64 * GIB, 1e11))
    assert "the disk may become full" in note
    assert "checkpoint.keep" in note


def test_prompts_are_the_largest_and_an_episode_may_fill_the_context() -> None:
    config = make_config()
    samples = [make_sample(range(5)), make_sample(range(9))]
    assert prompts_of(samples, config).text_tokens == 9
    episode = make_sample(range(5), env=EnvTask("visual/mazes", {}, 0))
    room = config.generator.max_model_len - config.rollout.max_tokens
    assert prompts_of([*samples, episode], config).text_tokens == room


def test_this_machine_has_a_device_and_memory() -> None:
    machine = this_machine()
    assert machine.device in ("cpu", "cuda")
    assert machine.memory_bytes > GIB
