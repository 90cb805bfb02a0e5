"""Moments in 8 bit under ZeRO-3: a quarter of the memory, nearly the same course, and checkpoints."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from builders import make_config, make_group, open_tiny, random_image, row

from vlrl.batch import Batch
from vlrl.packing.options import PackOptions
from vlrl.packing.pack import pack
from vlrl.trainer.driver import Trainer
from vlrl.weights.manifest import Segment

KINDS = ("float32", "8bit")
STEPS = 12
FEW = 4096
"""Values below which a moment stays in float32; ZeRO-3's flat slice has more."""


@pytest.fixture(scope="module")
def trainers(tiny_model: Path, local_ray: None) -> Iterator[dict[str, Trainer]]:
    pytest.importorskip("bitsandbytes", reason="bitsandbytes is not installed: make dev")
    processor = open_tiny(tiny_model)
    started = {}
    try:
        for kind in KINDS:
            config = make_config(
                tiny_model, optim={"state": kind}, trainer={"cpus_per_rank": 0.5, "timeout_s": 60}
            )
            started[kind] = Trainer(config, processor.banned_token_ids)
        for trainer in started.values():
            trainer.wait_ready()
        yield started
    finally:
        for trainer in started.values():
            trainer.close()


@pytest.fixture(scope="module")
def batch(tiny_model: Path) -> Batch:
    processor = open_tiny(tiny_model)
    sample = processor.sample(row("Which?", [random_image(56, 84, seed=1)], row_id="a"))
    return pack(
        [make_group([6, 5], sample=sample, advantages=[1.0, 1.0])],
        processor.pixels,
        PackOptions(
            num_ranks=1,
            max_tokens=2048,
            aggregation="token",
            max_completion_tokens=8,
            keep_zero_advantage=True,
        ),
    )


def moments(folder: Path) -> list[torch.Tensor]:
    """What a checkpoint has of both moments, scales and tables included, steps left out."""
    [file] = folder.rglob("*optim_states.pt")
    saved: Any = torch.load(file, weights_only=False, map_location="cpu")
    return list(tensors(saved["optimizer_state_dict"]["optimizer_state_dict"]["state"]))


def tensors(tree: Any) -> Iterator[torch.Tensor]:
    """bitsandbytes keeps what is quantized in a dictionary of its own."""
    for name, value in tree.items():
        if isinstance(value, dict):
            yield from tensors(value)
        elif torch.is_tensor(value) and name != "step":
            yield value


@pytest.mark.slow
def test_it_learns_as_float32_does_in_a_quarter_of_the_memory(
    trainers: dict[str, Trainer], batch: Batch, tmp_path: Path
) -> None:
    losses: dict[str, list[float]] = {}
    sizes: dict[str, int] = {}
    for kind, trainer in trainers.items():
        losses[kind] = [trainer.step(batch, "sft", 1e-3)[0]["policy/loss"] for _ in range(STEPS)]
        trainer.save(tmp_path / kind)
        sizes[kind] = sum(v.numel() * v.element_size() for v in moments(tmp_path / kind))
    first, last = losses["float32"][0], losses["float32"][-1]
    assert losses["8bit"][0] == pytest.approx(first, abs=1e-5)
    assert last < first - 0.5
    assert losses["8bit"][-1] == pytest.approx(last, abs=0.1 * (first - last))
    assert sizes["8bit"] == pytest.approx(sizes["float32"] / 4, rel=0.05)
    large = [v for v in moments(tmp_path / "8bit") if v.numel() > 10 * FEW]
    assert {v.dtype for v in large} <= {torch.uint8, torch.float32}
    assert sum(v.dtype == torch.uint8 for v in large) == 2


@pytest.mark.slow
def test_a_checkpoint_brings_8_bit_moments_back(
    trainers: dict[str, Trainer], batch: Batch, tmp_path: Path
) -> None:
    trainer = trainers["8bit"]
    trainer.save(tmp_path)
    trainer.step(batch, "sft", 1e-3)
    expected = weights(trainer)
    trainer.step(batch, "sft", 1e-1)  # somewhere else altogether
    trainer.load(tmp_path)
    trainer.step(batch, "sft", 1e-3)
    again = weights(trainer)
    assert all(torch.equal(again[n], expected[n]) for n in expected)


def weights(trainer: Trainer) -> dict[str, torch.Tensor]:
    trainer.write_weights()
    return {name: tensor.clone() for name, tensor in Segment(trainer.manifest)}
