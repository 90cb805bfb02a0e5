"""`vlrl train` asks whether there is room before engines start, offline, and says what would help."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from builders import make_config, make_sample

from vlrl.config import Config
from vlrl.errors import ResourceError
from vlrl.plan.machine import PlannedMachine, this_machine
from vlrl.plan.predict import GIB, predict
from vlrl.plan.room import prompts_of, require_room
from vlrl.types import EnvTask

GPU = PlannedMachine("cuda", 39 * GIB, 4e14, gpus_per_node=1)
pytestmark = pytest.mark.usefixtures("count_shapes_once")


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
        "does not fit in the 39.00 GiB of one GPU",
        "node 0 GPU 0: rank 0, engine 0",
        "lora.rank=32",
        "trainer.offload_optimizer=true",
        "GiB on 4 GPUs, ",
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
    """The prediction is right to some per cent, so the edge is not an error."""
    config = make_config(tiny_model)
    with pytest.raises(ResourceError):
        told(config, PlannedMachine("cpu", GIB, 1e11))
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


@pytest.fixture
def eight_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An nvidia-smi that tells of eight GPUs, the last of which is smaller."""
    program = tmp_path / "nvidia-smi"
    rows = "".join(f"{n}, GPU-{n}a, {40960 if n == 7 else 81559} MiB\\n" for n in range(8))
    program.write_text(f"#!/bin/sh\nprintf '{rows}'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


@pytest.mark.usefixtures("eight_gpus")
@pytest.mark.parametrize(
    ("visible", "num_gpus", "mib"),
    [
        (None, 8, 40960),
        ("0,1", 2, 81559),
        ("GPU-3a,GPU-7a", 2, 40960),
        ("5, 9", 1, 81559),
    ],
)
def test_this_machines_gpus_are_those_that_ray_sees(
    visible: str | None, num_gpus: int, mib: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    machine = this_machine()
    assert (machine.device, machine.gpus_per_node, machine.num_nodes) == ("cuda", num_gpus, 1)
    assert machine.memory_bytes == mib * 2**20
    assert machine.host_memory_bytes is not None
    assert machine.host_memory_bytes > GIB


@pytest.mark.usefixtures("eight_gpus")
@pytest.mark.parametrize("visible", ["", "-1"])
def test_hidden_gpus_leave_a_cpu(visible: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert this_machine().device == "cpu"


@pytest.mark.usefixtures("eight_gpus")
def test_a_run_is_refused_or_not_for_all_gpus_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole 3B model is too large for one of 40 GiB and not for eight, which an open number takes."""
    monkeypatch.setattr("vlrl.plan.machine.host_memory", lambda: 2000 * GIB)
    monkeypatch.setattr("vlrl.plan.room.free_bytes", lambda folder: 1000 * GIB)
    config, samples, notes = three_billion(), [make_sample()], list[str]()
    require_room(config, samples, notes.append, engine=True)
    assert notes == []
    with pytest.raises(ResourceError, match="num_ranks=9 needs as many GPUs"):
        require_room(three_billion(trainer={"num_ranks": 9}), samples, notes.append, engine=True)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "7")
    with pytest.raises(ResourceError, match=r"does not fit in the 40.00 GiB of one GPU"):
        require_room(config, samples, notes.append, engine=True)


@pytest.mark.usefixtures("eight_gpus")
def test_too_little_host_memory_is_refused_only_where_it_is_certain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of what is counted is assumed, so a little too much is a warning."""
    monkeypatch.setattr("vlrl.plan.room.free_bytes", lambda folder: 1000 * GIB)
    config, samples = three_billion(), [make_sample()]
    for share, refused in ((0.9, False), (0.5, True)):
        needed = predict(config, prompts_of(samples, config), this_machine()).needed_host_bytes
        monkeypatch.setattr("vlrl.plan.machine.host_memory", lambda size=int(share * needed): size)
        notes: list[str] = []
        if refused:
            with pytest.raises(ResourceError, match="of host memory does not fit"):
                require_room(config, samples, notes.append, engine=True)
        else:
            require_room(config, samples, notes.append, engine=True)
            assert "of host memory does not fit" in notes[0]


def test_too_little_shared_memory_is_told_before(tiny_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Docker's default is 64 MiB; a supervised run sends no weights."""
    machine = PlannedMachine("cpu", 64 * GIB, 1e11)
    usage = shutil.disk_usage("/dev/shm")
    monkeypatch.setattr("vlrl.plan.room.shutil.disk_usage", lambda folder: usage._replace(free=64 * 2**20))
    config = make_config(tiny_model)
    with pytest.raises(ResourceError, match=r"--shm-size, or set weights\.transport=disk"):
        told(config, machine)
    assert "--shm-size" in told(make_config(tiny_model, run={"check_memory": "warn"}), machine)[0]
    assert told(make_config(tiny_model, weights={"transport": "disk"}), machine) == []
    assert told(config, machine, engine=False) == []
