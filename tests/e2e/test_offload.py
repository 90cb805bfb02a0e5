"""Optimizer states and weights on a disk: the same training, and nothing left of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from builders import make_config, make_group, open_tiny, picture, row

from vlrl.batch import Batch
from vlrl.errors import ConfigError
from vlrl.pack import pack
from vlrl.trainer import Trainer
from vlrl.trainer_offload import OffloadFolder
from vlrl.weights import Segment

# DeepSpeed compiles its part when it is first used.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]


def batch_of(model: Path, seed: int) -> Batch:
    processor = open_tiny(model)
    sample = processor.sample(row(f"Look {seed}.", [picture(56, 84, seed)], row_id="s"))
    group = make_group([5, 3], sample=sample, advantages=[1.0, -1.0], seed=seed)
    return pack(
        [group],
        processor.pixels,
        num_ranks=1,
        max_tokens=2048,
        aggregation="token",
        max_completion_tokens=16,
        keep_zero_advantage=True,
    )


def weights(trainer: Trainer) -> dict[str, torch.Tensor]:
    trainer.write_weights()
    return {name: tensor.clone() for name, tensor in Segment(trainer.manifest)}


def open_trainer(model: Path, **options: Any) -> Trainer:
    trainer = Trainer(make_config(model, trainer={"cpus_per_rank": 0.5, **options}), [])
    trainer.wait_ready()
    return trainer


@pytest.mark.parametrize("parameters", [False, True], ids=["optimizer", "optimizer and parameters"])
def test_states_on_a_disk_train_the_same_and_survive_a_new_process(
    tiny_model: Path, local_ray: None, tmp_path: Path, parameters: bool
) -> None:
    disk = tmp_path / "disk"
    options = {"offload_optimizer": True, "offload_parameters": parameters, "offload_dir": disk}
    steps = [batch_of(tiny_model, seed) for seed in range(3)]

    plain = open_trainer(tiny_model)
    for batch in steps[:2]:
        plain.step(batch, "sft", 1e-2)
    halfway = weights(plain)
    plain.step(steps[2], "sft", 1e-2)
    expected = weights(plain)
    plain.close()

    first = open_trainer(tiny_model, **options)
    for batch in steps[:2]:
        first.step(batch, "sft", 1e-2)
    assert list(disk.rglob("*.swp"))
    first.save(tmp_path / "saved")
    reached = weights(first)
    first.close()
    assert list(disk.iterdir()) == []

    second = open_trainer(tiny_model, **options)
    second.step(steps[0], "sft", 1e-1)  # somewhere else altogether
    second.load(tmp_path / "saved")
    restored = weights(second)
    second.step(steps[2], "sft", 1e-2)
    found = weights(second)
    second.close()
    for name in expected:
        assert torch.equal(reached[name], halfway[name]), name
        assert torch.equal(restored[name], halfway[name]), name
        assert torch.equal(found[name], expected[name]), name


def test_what_a_killed_run_left_is_removed_by_the_next(tmp_path: Path) -> None:
    left = tmp_path / "vlrl-weights-999999999-abcdef01"
    left.mkdir()
    (left / "0.swp").write_text("x")
    folder = OffloadFolder(tmp_path)
    other = OffloadFolder(tmp_path)
    assert not left.exists() and folder.path.exists() and other.path.exists()
    folder.close()
    other.close()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"trainer.offload_dir=.*file"):
        OffloadFolder(tmp_path / "file")
