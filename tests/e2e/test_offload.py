"""Optimizer states and weights on a disk: the same training, and nothing left of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from builders import make_config, make_group, open_tiny, random_image, row

from vlrl.batch import Batch
from vlrl.envs.visual.questions.digit_sum import DigitSum
from vlrl.errors import ConfigError
from vlrl.model.tiny import build_tiny_qwen2_5_vl
from vlrl.packing.options import PackOptions
from vlrl.packing.pack import pack
from vlrl.trainer.driver import Trainer
from vlrl.trainer.offload import OffloadFolder
from vlrl.weights.manifest import Segment

# DeepSpeed compiles its part when it is first used.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]


def batch_of(model: Path, seed: int) -> Batch:
    processor = open_tiny(model)
    sample = processor.sample(row(f"Look {seed}.", [random_image(56, 84, seed)], row_id="s"))
    group = make_group([5, 3], sample=sample, advantages=[1.0, -1.0], seed=seed)
    return pack(
        [group],
        processor.pixels,
        PackOptions(
            num_ranks=1,
            max_tokens=2048,
            aggregation="token",
            max_completion_tokens=16,
            keep_zero_advantage=True,
        ),
    )


@pytest.fixture(scope="module")
def wide_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """DeepSpeed swaps slices of at least 1 MiB: here the language model's, 512 × 512 and more in float32."""
    folder = tmp_path_factory.mktemp("wide") / "model"
    return build_tiny_qwen2_5_vl(
        folder, DigitSum().corpus(), num_layers=2, hidden_size=512, vision_depth=1, vision_hidden_size=64
    )


def weights(trainer: Trainer) -> dict[str, torch.Tensor]:
    trainer.write_weights()
    return {name: tensor.clone() for name, tensor in Segment(trainer.manifest)}


def open_trainer(model: Path, sections: dict[str, Any], **options: Any) -> Trainer:
    trainer = Trainer(make_config(model, trainer={"cpus_per_rank": 0.5, **options}, **sections), [])
    trainer.wait_ready()
    return trainer


ON_DISK: dict[str, dict[str, Any]] = {
    "optimizer": {"trainer": {"offload_optimizer": True}},
    "parameters": {"trainer": {"offload_parameters": True}},
    "both, and a reference": {
        "trainer": {"offload_optimizer": True, "offload_parameters": True},
        "algorithm": {"kl_coef": 0.1},
    },
    "a reference that follows": {
        "trainer": {"offload_optimizer": True, "offload_parameters": True},
        "algorithm": {"kl_coef": 0.1, "reference": {"every": 1, "mix": 0.5}},
    },
    "frozen parameters": {"trainer": {"offload_parameters": True}, "lora": {"rank": 4}},
}
"""What is offloaded to the disk, and what else is unlike the default."""


@pytest.mark.parametrize("case", list(ON_DISK))
def test_what_lies_on_a_disk_trains_the_same_and_survives_a_new_process(
    wide_model: Path, local_ray: None, tmp_path: Path, case: str
) -> None:
    """Weights agree to the last bit in float32: buffers in bfloat16 would make them differ at once."""
    disk = tmp_path / "disk"
    sections = {name: section for name, section in ON_DISK[case].items() if name != "trainer"}
    options = {**ON_DISK[case]["trainer"], "offload_dir": disk}
    steps = [batch_of(wide_model, seed) for seed in range(3)]

    plain = open_trainer(wide_model, sections)
    start = weights(plain)
    for batch in steps[:2]:
        plain.step(batch, "grpo", 1e-3)
    halfway = weights(plain)
    plain.step(steps[2], "grpo", 1e-3)
    expected = weights(plain)
    plain.close()

    first = open_trainer(wide_model, sections, **options)
    assert_equal(weights(first), start)
    for batch in steps[:2]:
        first.step(batch, "grpo", 1e-3)
    of_parameters = list(disk.rglob("*_param.tensor.swp"))
    assert bool(of_parameters) == ("offload_parameters" in options)
    assert list(disk.rglob("*.swp"))
    first.save(tmp_path / "saved")
    reached = weights(first)
    first.close()
    assert list(disk.iterdir()) == []
    assert_equal(reached, halfway)

    second = open_trainer(wide_model, sections, **options)
    second.step(steps[0], "grpo", 1e-1)  # somewhere else altogether
    second.load(tmp_path / "saved")
    assert_equal(weights(second), halfway)
    second.step(steps[2], "grpo", 1e-3)
    found = weights(second)
    second.close()
    assert_equal(found, expected)


def assert_equal(found: dict[str, torch.Tensor], expected: dict[str, torch.Tensor]) -> None:
    assert found.keys() == expected.keys()
    wrong = {
        n: float((found[n] - w).abs().max()) for n, w in expected.items() if not torch.equal(found[n], w)
    }
    assert not wrong


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
