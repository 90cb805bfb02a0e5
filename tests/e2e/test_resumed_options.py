"""A run resumed under other options of the optimizer trains with the config's, not the checkpoint's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from builders import make_config, make_group, open_tiny, row

from vlrl.batch import Batch
from vlrl.packing.options import PackOptions
from vlrl.packing.pack import pack
from vlrl.trainer.driver import Trainer
from vlrl.weights.manifest import Segment

LR = 1e-3
DECAY = 0.5


def text_batch(model: Path) -> Batch:
    processor = open_tiny(model)
    group = make_group([6, 5], sample=processor.sample(row("Which?", row_id="a")), advantages=[1.0, 1.0])
    return pack(
        [group],
        processor.pixels,
        PackOptions(
            num_ranks=1,
            max_tokens=2048,
            aggregation="token",
            max_completion_tokens=8,
            keep_zero_advantage=True,
        ),
    )


def open_trainer(model: Path, **optim: Any) -> Trainer:
    trainer = Trainer(make_config(model, optim=optim, trainer={"cpus_per_rank": 0.5}), [])
    trainer.wait_ready()
    return trainer


def weights(trainer: Trainer) -> dict[str, torch.Tensor]:
    trainer.write_weights()
    return {name: tensor.clone() for name, tensor in Segment(trainer.manifest)}


@pytest.mark.slow
def test_the_config_s_decay_holds_after_a_resume_and_the_change_is_said(
    tiny_model: Path, local_ray: None, tmp_path: Path
) -> None:
    """AdamW's decay is w ← w - lr · decay · w beside the gradient's step (arXiv 1711.05101, Alg. 2)."""
    batch = text_batch(tiny_model)
    first = open_trainer(tiny_model)
    first.step(batch, "sft", LR)
    first.save(tmp_path / "saved")
    saved = weights(first)
    assert first.load(tmp_path / "saved") == []
    first.step(batch, "sft", LR)
    undecayed = weights(first)
    first.close()

    second = open_trainer(tiny_model, weight_decay=DECAY)
    assert second.load(tmp_path / "saved") == [
        f"optim.weight_decay: 0.0 in the checkpoint, {DECAY} from here on"
    ]
    second.step(batch, "sft", LR)
    decayed = weights(second)
    second.close()
    for name, start in saved.items():
        expected = undecayed[name] - LR * DECAY * start
        assert torch.allclose(decayed[name], expected, rtol=0, atol=1e-6), name
    assert not all(torch.equal(decayed[name], undecayed[name]) for name in saved)
