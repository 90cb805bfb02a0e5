"""A critic on real ranks: it learns, packing and ranks make no difference, and a checkpoint has all of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from builders import make_config, make_generation, observe, open_tiny, random_image, row
from critic_ranks import Trained, estimated, trained
from loaded_ranks import Slices
from rank_processes import RankProcesses, free_port
from torch import Tensor

from vlrl.algorithm.credit import assign_credit
from vlrl.batch import Batch
from vlrl.config import Config
from vlrl.packing.options import PackOptions
from vlrl.packing.pack import pack
from vlrl.rollout.session import Session
from vlrl.tracking.metrics import METRICS
from vlrl.types import Group, Score, Trajectory

NUM_STEPS = 3
TOLERANCE = 2e-4


@pytest.fixture(scope="module")
def one() -> Iterator[RankProcesses]:
    with RankProcesses(1) as processes:
        yield processes


@pytest.fixture(scope="module")
def two() -> Iterator[RankProcesses]:
    with RankProcesses(2) as processes:
        yield processes


def config_of(model: Path, num_ranks: int, *, critic: Any = None, trainer: Any = None, **keys: Any) -> Config:
    return make_config(
        model,
        trainer={"num_ranks": num_ranks, **(trainer or {})},
        algorithm={"preset": "ppo", "critic": {"lr": 1e-3, **(critic or {})}, **keys},
    )


def episode(sample: Any, processor: Any, number: int, lengths: Sequence[int], reward: float) -> Trajectory:
    """An episode of so many turns, with an image between two."""
    rng, session = np.random.default_rng(number), Session(sample, number)
    for turn, length in enumerate(lengths):
        if turn:
            observe(processor, session, "Go on.", [random_image(56, 56, seed=number)])
        ids = rng.integers(0, 200, length)
        session.append_action(make_generation(ids.tolist(), rng.normal(-3.0, 0.3, length).tolist()))
    trajectory = session.trajectory("", "ok", 0.0)
    trajectory.score = Score(reward, {}, turns=tuple([0.25] * (len(lengths) - 1) + [0.0]))
    return trajectory


def groups_of(model: Path, config: Config, seed: int) -> list[Group]:
    """Two prompts, told apart by an image, of which one is worth more; one has a group of one."""
    processor, groups = open_tiny(model), []
    for number, turns in enumerate([[(5,), (3, 4), (6,)], [(4, 2)]]):
        image = random_image(56, 84, number)
        sample = processor.sample(row(f"Look {number}.", [image], row_id=f"s{number}"))
        members = [
            episode(sample, processor, 10 * seed + index, lengths, float(number))
            for index, lengths in enumerate(turns)
        ]
        groups.append(Group(members, smallest=1))
    assign_credit(groups, config.algorithm)
    return groups


def batch_of(model: Path, config: Config, seed: int, **options: Any) -> Batch:
    whole = PackOptions.of(config, config.algorithm)
    given = {field: getattr(whole, field) for field in whole.__slots__} | options
    return pack(groups_of(model, config, seed), open_tiny(model).pixels, PackOptions(**given))


def run(
    processes: RankProcesses,
    config: Config,
    batches: Sequence[Batch],
    *folders: Path | None,
    naps: bool = False,
) -> list[Trained]:
    port, folders = free_port(), (*folders, None, None)[:2]
    return processes.run(
        trained,
        [
            (config, rank, port, [batch[rank] for batch in batches], *folders, naps)
            for rank in range(processes.count)
        ],
    )


def weights(slices: Sequence[Slices]) -> dict[str, Tensor]:
    """Whole weights of the ranks' slices."""
    return {
        name: torch.cat([of_rank[name][0] for of_rank in slices])[: torch.Size(shape).numel()]
        for name, (_, shape) in slices[0].items()
    }


def both(answers: Sequence[Trained]) -> dict[str, Tensor]:
    """Weights of policy and critic."""
    policy, critic = (weights([getattr(answer, name) for answer in answers]) for name in ("policy", "critic"))
    return {f"policy.{n}": t for n, t in policy.items()} | {f"critic.{n}": t for n, t in critic.items()}


def assert_same(found: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    assert found.keys() == expected.keys()
    assert [name for name in expected if not torch.equal(found[name], expected[name])] == []


@pytest.mark.slow
def test_it_learns_what_a_prompt_is_worth_and_the_policy_waits(one: RankProcesses, tiny_model: Path) -> None:
    config = config_of(tiny_model, 1, critic={"warmup_steps": 2})
    steps = [batch_of(tiny_model, config, seed) for seed in range(12)]
    [start], [waiting] = run(one, config, []), run(one, config, steps[:2])
    assert_same(weights([waiting.policy]), weights([start.policy]))
    assert not weights([start.critic])["head.weight"].any()
    [answer] = run(one, config, steps)
    assert [norm > 0 for norm in answer.norms] == [False] * 2 + [True] * 10
    explained = [metrics["critic/explained_variance"] for metrics in answer.metrics]
    assert explained[0] == pytest.approx(0, abs=1e-9) and explained[-1] > 0.7
    assert answer.metrics[-1]["critic/loss"] < 0.2 * answer.metrics[0]["critic/loss"]
    assert answer.metrics[0]["critic/value_mean"] == 0
    assert all(metrics.keys() <= METRICS.keys() for metrics in answer.metrics)
    assert not torch.equal(
        weights([answer.policy])["lm_head.weight"], weights([start.policy])["lm_head.weight"]
    )


@pytest.mark.slow
@pytest.mark.parametrize("level", ["token", "turn"])
def test_packing_and_ranks_make_no_difference(
    one: RankProcesses, two: RankProcesses, tiny_model: Path, level: str
) -> None:
    """Branches of a tree on one rank, apart on two, and slices of each sequence on two."""
    layouts = {"one": (one, 1, {}), "two": (two, 2, {}), "slices": (two, 2, {"sequence_parallel": 2})}
    ends, tokens = {}, {}
    for name, (processes, num_ranks, trainer) in layouts.items():
        config = config_of(tiny_model, num_ranks, critic={"level": level}, trainer=trainer)
        steps = [batch_of(tiny_model, config, seed) for seed in range(NUM_STEPS)]
        answers = run(processes, config, steps)
        assert all(answer.metrics == answers[0].metrics for answer in answers)
        ends[name] = both(answers), answers[0].metrics
        port, count = free_port(), processes.count
        of_ranks = processes.run(estimated, [(config, r, port, steps[1][r]) for r in range(count)])
        tokens[name] = sorted_tokens([batch for of_rank in of_ranks for batch in of_rank])
    for name in ("two", "slices"):
        assert np.array_equal(tokens[name][:, :3], tokens["one"][:, :3]), name
        assert tokens[name][:, 3:] == pytest.approx(tokens["one"][:, 3:], abs=1e-5), name
        for key, value in ends["one"][0].items():
            assert torch.allclose(ends[name][0][key], value, atol=TOLERANCE), (name, key)
        for found, expected in zip(ends[name][1], ends["one"][1], strict=True):
            assert found == pytest.approx(expected, abs=1e-3), name
    num_steps = np.count_nonzero(tokens["one"][:, 6])
    assert num_steps == {"token": len(tokens["one"]), "turn": 6}[level]
    assert tokens["one"][:, 6].sum() == pytest.approx(1)
    advantages = tokens["one"][:, 5]
    assert (advantages.mean(), advantages.std()) == pytest.approx((0, 1), abs=1e-5)


def sorted_tokens(batches: Sequence[dict[str, Any]]) -> np.ndarray[Any, Any]:
    """[N, 7] of all tokens: steps, values, returns, advantages and weights, in the order of the episodes."""
    names = ("values", "returns", "advantages", "weights")
    rows = [np.column_stack([batch["steps"], *(batch[name] for name in names)]) for batch in batches]
    whole = np.concatenate(rows)
    return whole[np.lexsort((whole[:, 2], whole[:, 1], whole[:, 0]))]


@pytest.mark.slow
def test_a_resumed_run_is_the_same_to_the_last_bit(
    two: RankProcesses, one: RankProcesses, tiny_model: Path, tmp_path: Path
) -> None:
    """Also where memory was given up between steps; other ranks cut both models again."""
    config = config_of(tiny_model, 2, critic={"warmup_steps": 1}, kl_coef=0.1, kl_in="reward")
    steps = [batch_of(tiny_model, config, seed) for seed in range(NUM_STEPS)]
    whole, napping = run(two, config, steps), run(two, config, steps, naps=True)
    first = run(two, config, steps[:2], tmp_path / "state")
    second = run(two, config, steps[2:], None, tmp_path / "state")
    assert_same(both(second), both(whole))
    assert_same(both(napping), both(whole))
    assert [answer.said for answer in second] == [[], []]
    assert first[0].metrics + second[0].metrics == whole[0].metrics
    alone = config_of(tiny_model, 1, critic={"warmup_steps": 1}, kl_coef=0.1, kl_in="reward")
    assert_same(both(run(one, alone, [], None, tmp_path / "state")), both(first))
    again = run(one, alone, [batch_of(tiny_model, alone, 2)], None, tmp_path / "state")
    assert again[0].norms[0] > 0, "the steps of warm-up were counted"


def test_a_checkpoint_without_a_critic_says_so(one: RankProcesses, tiny_model: Path, tmp_path: Path) -> None:
    plain = make_config(tiny_model, trainer={"num_ranks": 1})
    run(one, plain, [], tmp_path / "plain")
    [answer] = run(one, config_of(tiny_model, 1), [], None, tmp_path / "plain")
    assert answer.said == ["the checkpoint has no critic: it begins at its own model again"]


@pytest.mark.slow
def test_offloaded_and_frozen_and_beside_adapters(one: RankProcesses, tiny_model: Path) -> None:
    """Offloaded to host memory it is the same; what the policy leaves as it is, the critic does too."""
    config = config_of(tiny_model, 1)
    steps = [batch_of(tiny_model, config, seed) for seed in range(2)]
    [plain] = run(one, config, steps)
    offload = {"offload_parameters": True, "offload_optimizer": True}
    [offloaded] = run(one, config_of(tiny_model, 1, trainer=offload), steps)
    for name, value in both([plain]).items():
        assert torch.allclose(both([offloaded])[name], value, atol=1e-6), name
    config.lora = make_config(lora={"rank": 2}).lora
    [start], [adapted] = run(one, config, []), run(one, config, steps)
    before, after = weights([start.critic]), weights([adapted.critic])
    moved = {name for name in before if not torch.equal(before[name], after[name])}
    assert "head.weight" in moved and moved - {"head.weight", "head.bias"}
    assert all(".lora_" in name for name in moved - {"head.weight", "head.bias"})
