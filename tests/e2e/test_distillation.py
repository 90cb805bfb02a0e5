"""A teacher in the trainer's ranks and in whole runs: another size, its own pass over the same packed trees.

As `test_ranks`: one rank, two, and two that share every sequence take the same step, and it is that of the
formula. A run distils, resumes bit by bit, and goes on while it generates; that it learns is shown by
`test_distillation_learning`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from builders import make_config, make_group, open_tiny, random_image, row
from plain_model import model_of
from tiny_families import CORPUS, build_qwen3_vl
from whole_runs import metrics, run

from vlrl.batch import Batch
from vlrl.config import Config
from vlrl.envs.visual.questions.digit_sum import DigitSum
from vlrl.errors import ConfigError, Interrupted
from vlrl.model.logprobs import DeviceBatch, TreeLogprobs
from vlrl.model.tiny import build_tiny_qwen2_5_vl, build_tiny_qwen_vl
from vlrl.packing.options import PackOptions
from vlrl.packing.pack import pack
from vlrl.tracking.events import EVENTS_FILE
from vlrl.trainer.driver import Trainer
from vlrl.types import Group

RANKS = ((1, 1), (2, 1), (2, 2))
"""Of each trainer the ranks, and how many of them share a sequence."""
COEF = 0.5
TEMPERATURE = 0.8
NUM_STEPS, STOP_AFTER = 4, 1


@pytest.fixture(scope="module")
def student(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_qwen3_vl(tmp_path_factory.mktemp("student") / "qwen3")


@pytest.fixture(scope="module")
def teacher(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Wider and deeper, with more heads, and the same tokenizer."""
    folder = tmp_path_factory.mktemp("teacher") / "qwen3"
    return build_tiny_qwen_vl(
        "qwen3_vl", folder, CORPUS, seed=7, hidden_size=192, num_layers=3, num_heads=6, vision_depth=3
    )


@pytest.fixture(scope="module")
def processor(student: Path) -> Any:
    return open_tiny(student)


@pytest.fixture(scope="module")
def trainers(student: Path, teacher: Path, processor: Any, local_ray: None) -> Iterator[list[Trainer]]:
    """The second one keeps its teacher in host memory, and that alone."""
    started = [
        Trainer(
            make_config(
                student,
                algorithm={"teacher": {"path": str(teacher), "coef": COEF, "offload": number == 1}},
                rollout={"temperature": TEMPERATURE},
                optim={"eps": 1e-2},
                trainer={
                    "num_ranks": ranks,
                    "sequence_parallel": shared,
                    "cpus_per_rank": 0.5,
                    "timeout_s": 60,
                },
            ),
            processor.banned_token_ids,
        )
        for number, (ranks, shared) in enumerate(RANKS)
    ]
    try:
        for trainer in started:
            trainer.wait_ready()
        yield started
    finally:
        for trainer in started:
            trainer.close()


def group(processor: Any, name: str, sizes: Sequence[tuple[int, int]], advantages: Sequence[float]) -> Group:
    seed = sum(map(ord, name))
    images = [random_image(*size, seed=seed + i) for i, size in enumerate(sizes)]
    sample = processor.sample(row(f"Look at {name}.", images, row_id=name))
    lengths = [5 + i for i in range(len(advantages))]
    made = make_group(lengths, sample=sample, advantages=advantages, seed=seed)
    for trajectory in made.trajectories:  # near a random model's logprobs, so that few ratios are clipped
        trajectory.ledgers[0].sampler_logprobs[trajectory.ledgers[0].loss_mask] -= 2.8
    return made


def packed(processor: Any, max_tokens: int) -> list[Batch]:
    """A group with an image and rewards, one without either, and an image in several micro-batches."""
    groups = [
        group(processor, "a", [(84, 56), (56, 28)], [1.0, -1.0, 0.5]),
        group(processor, "b", [], [0.0, 0.0]),
        group(processor, "c", [(96, 96)], [0.0] * 8),
    ]
    return [
        pack(
            groups,
            processor.pixels,
            PackOptions(
                num_ranks=ranks,
                max_tokens=max_tokens,
                max_completion_tokens=16,
                sequence_parallel=shared,
                images_once=ranks == 2,
            ),
        )
        for ranks, shared in RANKS
    ]


@pytest.mark.slow
@pytest.mark.parametrize("max_tokens", [64, 2048])
def test_a_step_is_that_of_the_formula_on_any_number_of_ranks(
    trainers: list[Trainer], processor: Any, student: Path, teacher: Path, max_tokens: int
) -> None:
    """All groups are trained, those without a reward's advantage too; clipping sees the sum of both."""
    batches = packed(processor, max_tokens)
    banned = processor.banned_token_ids
    trainers[0].write_weights()
    own, other = (
        TreeLogprobs(model, temperature=TEMPERATURE, banned_token_ids=banned)
        for model in (model_of(student, trainers[0].manifest), model_of(teacher))
    )
    total, gaps = torch.zeros(()), []
    for micro_batch in batches[0][0]:
        generated = DeviceBatch.of(micro_batch, torch.device("cpu"))
        logprobs, _ = own(generated)
        with torch.no_grad():
            gap = logprobs - other(generated)[0]
        advantages = generated.advantages - COEF * gap
        ratio = (logprobs - generated.sampler_logprobs).exp()
        gain = torch.minimum(ratio * advantages, ratio.clamp(0.8, 1.28) * advantages)
        gain = torch.where(advantages < 0, gain.maximum(3.0 * advantages), gain)
        total = total - (gain * generated.weights).sum()
        gaps += gap.tolist()
    total.backward()
    gradients = [p.grad for p in own.parameters() if p.grad is not None]
    norm = float(torch.stack([g.norm() for g in gradients]).norm())
    assert len(gaps) == 3 * 6 + 2 * 5.5 + 8 * 8.5
    for trainer, batch in zip(trainers, batches, strict=True):
        metrics, _ = trainer.step(batch, "grpo", 1e-3)
        assert metrics["distillation/reverse_kl"] == pytest.approx(np.mean(gaps), rel=1e-4)
        assert metrics["policy/loss"] == pytest.approx(float(total.detach()), abs=1e-5)
        assert metrics["optim/grad_norm"] == pytest.approx(norm, rel=1e-4)


@pytest.mark.slow
def test_a_teacher_that_cannot_be_loaded_is_named_by_its_key(student: Path, tmp_path: Path) -> None:
    config = make_config(student, algorithm={"teacher": {"path": str(tmp_path)}})
    trainer = Trainer(config, [])
    try:
        with pytest.raises(ConfigError, match=r"algorithm.teacher: model.path='.*' cannot be loaded"):
            trainer.wait_ready()
    finally:
        trainer.close()


@pytest.fixture(scope="module")
def new_run(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A config by name: no reward, a wider teacher."""
    folder = tmp_path_factory.mktemp("runs")
    wider = build_tiny_qwen2_5_vl(
        folder / "wider", DigitSum().corpus(), seed=3, hidden_size=192, num_heads=6, num_layers=2
    )

    def make(name: str, **sections: Any) -> Config:
        defaults: dict[str, Any] = {
            "run": {"name": name, "dir": str(folder), "seed": 11},
            "rewards": [],
            "num_steps": NUM_STEPS,
            "algorithm": {"teacher": {"path": str(wider)}, "num_minibatches": 2},
            "optim": {"lr": 3e-3},
            "checkpoint": {"every": 0},
            "logging": {"tensorboard": False},
        }
        return make_config(tiny_model, **{**defaults, **sections})

    return make


@pytest.fixture(scope="module")
def uninterrupted(new_run: Any, local_ray: None) -> Config:
    config: Config = new_run("whole")
    run(config)
    return config


@pytest.mark.slow
def test_without_rewards_every_group_is_trained(uninterrupted: Config) -> None:
    found = metrics(uninterrupted)
    assert [step["step"] for step in found] == list(range(NUM_STEPS))
    assert len({step["distillation/reverse_kl"] for step in found}) == NUM_STEPS
    assert all(step["reward/zero_variance_groups"] == 1.0 for step in found)
    assert all(step["optim/grad_norm"] > 0 for step in found)
    events = uninterrupted.run_dir / EVENTS_FILE
    told = events.read_text() if events.exists() else ""
    assert "nothing_learnt" not in told and "reference_not_rewarded" not in told


@pytest.mark.slow
def test_stopping_and_resuming_gives_the_same_metrics_and_weights(
    uninterrupted: Config, new_run: Any
) -> None:
    config = new_run("stopped")
    with pytest.raises(Interrupted, match="--resume"):
        run(config, stop_after=STOP_AFTER)
    run(config, resume=True)
    assert metrics(config) == metrics(uninterrupted)
    one, two = ((c.run_dir / "model" / "model.safetensors").read_bytes() for c in (config, uninterrupted))
    assert one == two


@pytest.mark.slow
def test_it_goes_on_while_it_generates_in_bfloat16_with_corrections(new_run: Any, local_ray: None) -> None:
    config = new_run(
        "async",
        asynchronous={"mode": "async", "max_staleness": 1, "pipeline_depth": 2},
        episodes={"lockstep": False},
        algorithm={**new_run("any").algorithm.model_dump(), "correction": {"kind": "truncated"}},
    )
    config.model.dtype = "bfloat16"
    run(config)
    found = metrics(config)
    assert all(np.isfinite(step["distillation/reverse_kl"]) for step in found)
    assert all(step["optim/grad_norm"] > 0 for step in found)
    assert any(step["off_policy/staleness_mean"] > 0 for step in found)
