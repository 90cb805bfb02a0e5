"""A checkpoint of two ranks goes on, on one and on four: the same numbers, the same samples in order."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from builders import make_config, make_group, open_tiny, random_image, row
from rich.console import Console
from tiny_families import build_qwen3_vl
from zero_states import whole_states

from vlrl import grpo
from vlrl.batch import Batch
from vlrl.config import Config, parse_config
from vlrl.packing.options import PackOptions
from vlrl.packing.pack import pack
from vlrl.tracking.console import TrainConsole
from vlrl.trainer.driver import Trainer
from vlrl.weights.manifest import Segment

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

TOLERANCE = 1e-6
OTHERS = (1, 4)
NUM_STEPS, SAVED_STEP = 4, 2

CASES: dict[str, dict[str, Any]] = {
    "float32": {},
    "bfloat16": {"model": {"dtype": "bfloat16"}},
    "adapters": {"lora": {"rank": 3, "targets": ["language_layers", "vision_tower"]}},
    "a frozen tower": {"model": {"freeze": ["vision_tower"]}},
    "offloaded": {"trainer": {"offload_optimizer": True, "offload_parameters": True}},
    "muon": {"optim": {"name": "muon"}},
    "muon, offloaded": {"optim": {"name": "muon"}, "trainer": {"offload_optimizer": True}},
}
"""What is unlike the default: each has slices or states of its own kind."""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_qwen3_vl(tmp_path_factory.mktemp("model") / "qwen3")


def batch_for(model: Path, num_ranks: int, seed: int) -> Batch:
    processor = open_tiny(model)
    groups = [
        make_group(
            [5, 3],
            sample=processor.sample(row(f"Look {seed}.", [random_image(56, 84, seed + i)], row_id=str(i))),
            advantages=[1.0, -1.0],
            seed=seed + i,
        )
        for i in range(4)
    ]
    options = PackOptions(
        num_ranks=num_ranks,
        max_tokens=2048,
        aggregation="token",
        max_completion_tokens=16,
        keep_zero_advantage=True,
    )
    return pack(groups, processor.pixels, options)


@contextmanager
def trainer_of(model: Path, case: dict[str, Any], num_ranks: int) -> Iterator[Trainer]:
    """A trainer whose steps follow the gradient: with a small eps they would follow its rounding's sign."""
    options = {"cpus_per_rank": 0.25, "num_ranks": num_ranks, **case.get("trainer", {})}
    sections = {**case, "trainer": options, "optim": {"eps": 1e-2, **case.get("optim", {})}}
    of_model = {"path": str(model), **sections.pop("model", {})}
    trainer = Trainer(parse_config(make_config(**sections).model_dump(mode="json") | {"model": of_model}), [])
    try:
        trainer.wait_ready()
        yield trainer
    finally:
        trainer.close()


def step(trainer: Trainer, model: Path, num_ranks: int, seeds: Sequence[int]) -> None:
    for seed in seeds:
        trainer.step(batch_for(model, num_ranks, seed), "grpo", 1e-2)


def weights(trainer: Trainer) -> dict[str, torch.Tensor]:
    trainer.write_weights()
    return {name: tensor.clone() for name, tensor in Segment(trainer.manifest)}


def largest_difference(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> float:
    assert one.keys() == other.keys()
    return max(float((one[name].float() - other[name].float()).abs().max()) for name in one)


@pytest.mark.parametrize("case", list(CASES))
def test_weights_and_states_of_two_ranks_are_those_of_one_and_of_four(
    model: Path, local_ray: None, tmp_path: Path, case: str
) -> None:
    with trainer_of(model, CASES[case], 2) as two:
        step(two, model, 2, seeds=[1, 2])
        two.save(tmp_path / "saved")
        saved = weights(two)
        step(two, model, 2, seeds=[3])
        expected = weights(two)
    only_adam = not case.startswith("muon")  # DeepSpeed's conversion knows no other states
    states = whole_states(tmp_path / "saved", tmp_path / "whole") if only_adam else {}
    assert largest_difference(saved, expected) > 100 * TOLERANCE
    assert all(float(kinds["exp_avg"].abs().max()) > 0 for kinds in states.values())
    for num_ranks in OTHERS:
        with trainer_of(model, CASES[case], num_ranks) as trainer:
            trainer.load(tmp_path / "saved")
            assert largest_difference(weights(trainer), saved) <= TOLERANCE
            trainer.save(tmp_path / f"again-{num_ranks}")
            step(trainer, model, num_ranks, seeds=[3])
            bound = 2.0**-8 if case == "bfloat16" else 1e-5  # sums over ranks are rounded otherwise
            assert largest_difference(weights(trainer), expected) <= bound
        if not only_adam:
            continue
        found = whole_states(tmp_path / f"again-{num_ranks}", tmp_path / f"whole-{num_ranks}")
        assert found.keys() == states.keys()
        for name, kinds in states.items():
            assert largest_difference(found[name], kinds) <= TOLERANCE, name


def run_config(model: Path, folder: Path, num_ranks: int) -> Config:
    return make_config(
        model,
        run={"name": "run", "dir": str(folder), "seed": 11},
        data={"train": {"name": "digit_sum", "limit": 60}},
        rewards=[{"name": f"{folder.parent}/reward.py:parity"}],
        rollout={"prompts_per_step": 4, "group_size": 2, "max_tokens": 6},
        num_steps=NUM_STEPS,
        trainer={"num_ranks": num_ranks, "cpus_per_rank": 0.25},
        optim={"lr": 1e-3},
        checkpoint={"every": SAVED_STEP, "keep": 2},
        logging={"tensorboard": False},
    )


def lines(config: Config, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (config.run_dir / name).read_text().splitlines()]


def test_a_run_goes_on_with_the_next_samples_on_one_and_on_four_ranks(
    tiny_model: Path, local_ray: None, tmp_path: Path
) -> None:
    """One run of two ranks to its end; its copies go on from its first checkpoint."""
    (tmp_path / "reward.py").write_text(
        "def parity(completion, answer):\n    return float(sum(map(ord, completion)) % 2)\n"
    )
    whole = run_config(tiny_model, tmp_path / "two", 2)
    play(whole)
    for num_ranks in OTHERS:
        config = run_config(tiny_model, tmp_path / str(num_ranks), num_ranks)
        shutil.copytree(whole.run_dir, config.run_dir)
        (config.run_dir / "summary.json").unlink()
        shutil.rmtree(config.run_dir / "checkpoints" / f"step_{NUM_STEPS:06d}")
        said = play(config, resume=True)
        assert f"trainer.num_ranks: 2 → {num_ranks}" in said
        for one, other in zip(lines(config, "samples.jsonl"), lines(whole, "samples.jsonl"), strict=True):
            for key in ("step", "positions", "sample_ids"):
                assert one[key] == other[key]
        first, expected = (lines(each, "metrics.jsonl")[SAVED_STEP] for each in (config, whole))
        assert first["reward/mean"] == expected["reward/mean"]  # generated from equal weights
        assert np.isclose(first["policy/loss"], expected["policy/loss"], atol=1e-5)
        assert np.isclose(first["optim/grad_norm"], expected["optim/grad_norm"], rtol=1e-3)


def play(config: Config, *, resume: bool = False) -> str:
    """Train, and return what the console said."""
    shown = io.StringIO()
    with TrainConsole("test", config.num_steps, console=Console(file=shown, width=300)) as console:
        grpo.train(config, console, resume=resume)
    return shown.getvalue()
