"""A frozen tower on two ZeRO-3 ranks: the same steps as on one, features cached, its weights left alone."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch
from builders import make_config, make_group, open_tiny, random_image, row
from tiny_families import build_qwen3_vl

from vlrl.batch import Batch
from vlrl.model.parts import VISION_PARTS, part_of
from vlrl.packing.options import PackOptions
from vlrl.packing.pack import pack
from vlrl.trainer.driver import Trainer
from vlrl.trainer.profile import PHASES
from vlrl.weights.manifest import Segment

TOLERANCE = 1e-5


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_qwen3_vl(tmp_path_factory.mktemp("model") / "qwen3")


@pytest.fixture(scope="module")
def processor(folder: Path) -> Any:
    return open_tiny(folder)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def trainers(folder: Path, processor: Any, runs: Path, local_ray: None) -> Iterator[list[Trainer]]:
    """Trainers of one rank and of two, with a frozen reference that shares the cache; two steps are profiled.

    The second keeps weights and optimizer states offloaded, which may not change what a step does.
    """
    configs = [
        make_config(
            folder,
            run={"dir": runs, "name": f"ranks-{ranks}"},
            profile={"steps": [0, 1]},
            algorithm={"kl_coef": 0.1},
            optim={"eps": 1e-2},
            trainer={
                **{"num_ranks": ranks, "cpus_per_rank": 0.5, "timeout_s": 120},
                **{"offload_optimizer": ranks == 2, "offload_parameters": ranks == 2},
            },
        )
        for ranks in (1, 2)
    ]
    for config in configs:
        config.model.freeze = list(VISION_PARTS)
    started = [Trainer(config, processor.banned_token_ids) for config in configs]
    try:
        for trainer in started:
            trainer.wait_ready()
        yield started
    finally:
        for trainer in started:
            trainer.close()


def batches(processor: Any, images: list[list[int]]) -> list[Batch]:
    """Batches for one rank and for two: a group for each list of images, so that two ranks differ."""
    groups = [
        make_group(
            [4, 3],
            sample=processor.sample(
                row("Which?", [random_image(56, 84, seed=seed) for seed in seeds], row_id=f"{seeds}")
            ),
            advantages=[1.0, -1.0],
            seed=index,
        )
        for index, seeds in enumerate(images)
    ]
    return [
        pack(
            groups,
            processor.pixels,
            PackOptions(
                num_ranks=ranks,
                max_tokens=2048,
                aggregation="token",
                max_completion_tokens=8,
                keep_zero_advantage=True,
            ),
        )
        for ranks in (1, 2)
    ]


def weights(trainer: Trainer) -> dict[str, torch.Tensor]:
    trainer.write_weights()
    return {name: tensor.clone() for name, tensor in Segment(trainer.manifest)}


def test_ranks_stay_in_step_whatever_each_of_them_knows(trainers: list[Trainer], processor: Any) -> None:
    """All unknown, all known, one rank's known and the other's not, none on one rank."""
    before = [weights(trainer) for trainer in trainers]
    shares: list[list[float]] = []
    for images in ([[1], [2, 3]], [[1], [2, 3]], [[1], [4, 5]], [[], [4, 5]]):
        steps = [
            trainer.step(batch, "grpo", 1e-2)[0]
            for trainer, batch in zip(trainers, batches(processor, images), strict=True)
        ]
        assert steps[0]["policy/loss"] == pytest.approx(steps[1]["policy/loss"], abs=TOLERANCE)
        assert steps[0]["policy/kl_reference"] == pytest.approx(
            steps[1]["policy/kl_reference"], abs=TOLERANCE
        )
        shares.append([step["vision/cached_share"] for step in steps])
    # The reference asks for each image too, right after the policy did.
    assert shares == [[0.5, 0.5], [1.0, 1.0], [pytest.approx(4 / 6)] * 2, [1.0, 1.0]]
    after = [weights(trainer) for trainer in trainers]
    for name in after[0]:
        assert float((after[0][name] - after[1][name]).abs().max()) <= TOLERANCE, name
        frozen = part_of(name) in VISION_PARTS
        assert torch.equal(before[0][name], after[0][name]) == frozen, name


def test_profiled_steps_say_where_they_went(trainers: list[Trainer], runs: Path, processor: Any) -> None:
    """Runs after the test above. The reference fills the cache first; the policy's own tower never runs."""
    assert not list(runs.glob("*/profile/step_000002*"))
    for ranks in (1, 2):
        folder = runs / f"ranks-{ranks}" / "profile"
        assert len(list(folder.glob("*.trace.json.gz"))) == 2 * ranks
        for step, rank in product((0, 1), range(ranks)):
            stem = folder / f"step_00000{step}_rank_{rank}"
            sums = json.loads(stem.with_suffix(".json").read_text())
            assert sum(sums["phases_s"].values()) == pytest.approx(sums["total_s"])
            phases = {name for name, seconds in sums["phases_s"].items() if seconds > 0}
            assert phases == {*PHASES} - {"tower"}
            assert (sums["communication_s"] > 0) or ranks == 1
            assert "| language model |" in stem.with_suffix(".md").read_text()
            with gzip.open(f"{stem}.trace.json.gz", "rt") as file:
                assert json.load(file)["traceEvents"]


def test_a_checkpoint_brings_back_a_partly_frozen_model(
    trainers: list[Trainer], processor: Any, tmp_path: Path
) -> None:
    trainer, batch = trainers[1], batches(processor, [[1], [2, 3]])[1]
    trainer.save(tmp_path)
    trainer.step(batch, "grpo", 1e-2)
    expected = weights(trainer)
    trainer.step(batch, "sft", 1e-1)
    trainer.load(tmp_path)
    trainer.step(batch, "grpo", 1e-2)
    again = weights(trainer)
    assert all(torch.equal(again[name], expected[name]) for name in expected)
