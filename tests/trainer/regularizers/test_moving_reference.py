"""A reference that follows the policy, on real ranks: by formula, in bfloat16, offloaded, resumed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from builders import make_config, make_group, open_tiny, random_image, row
from loaded_ranks import Slices
from rank_processes import RankProcesses, free_port
from regularized_ranks import Trained, trained
from torch import Tensor

from vlrl.batch import Batch
from vlrl.config import Config
from vlrl.packing.options import PackOptions
from vlrl.packing.pack import pack

pytestmark = pytest.mark.slow(together=True)

NUM_RANKS, NUM_STEPS = 2, 4
ADAPTIVE = {
    "kl_in": "reward",
    "normalize": "batch",
    "kl_adaptive": {"target": 1e-4, "horizon": 100},
    "entropy_adaptive": {"target": 20.0, "increment": 0.002},
    "selections": [{"name": "clip_cov", "options": {"share": 0.2, "low": 0.0}}],
}
"""All KL and entropy terms at once."""


@pytest.fixture(scope="module")
def ranks() -> Iterator[RankProcesses]:
    with RankProcesses(NUM_RANKS) as processes:
        yield processes


@pytest.fixture(scope="module")
def steps(tiny_model: Path) -> list[Batch]:
    """Each of two groups, so that both ranks have tokens."""
    return [batch_of(tiny_model, seed, NUM_RANKS) for seed in range(NUM_STEPS)]


def batch_of(model: Path, seed: int, num_ranks: int) -> Batch:
    processor, groups = open_tiny(model), []
    for number in range(2):
        image = random_image(56, 84, 2 * seed + number)
        sample = processor.sample(row(f"Look {number}.", [image], row_id=f"s{number}"))
        groups.append(make_group([5, 3], sample=sample, advantages=[1.0, -1.0], seed=2 * seed + number))
    options = PackOptions(num_ranks=num_ranks, max_tokens=2048, max_completion_tokens=16)
    return pack(groups, processor.pixels, options)


def config_of(model: Path, reference: dict[str, Any], num_ranks: int = NUM_RANKS, **sections: Any) -> Config:
    trainer = {"num_ranks": num_ranks, **sections.pop("trainer", {})}
    algorithm = {"kl_coef": 0.1, "reference": reference, **sections.pop("algorithm", {})}
    return make_config(model, trainer=trainer, algorithm=algorithm, **sections)


def run(
    processes: RankProcesses, config: Config, batches: Sequence[Batch], *folders: Path | None
) -> list[Trained]:
    """Start all ranks and take steps; folders to save to and to load from."""
    port = free_port()
    given = [[batch[rank] for batch in batches] for rank in range(processes.count)]
    return processes.run(
        trained, [(config, rank, port, given[rank], *folders) for rank in range(processes.count)]
    )


def weights(slices: Sequence[Slices]) -> dict[str, Tensor]:
    """Whole weights of the ranks' slices."""
    return {
        name: torch.cat([of_rank[name][0] for of_rank in slices])[: torch.Size(shape).numel()]
        for name, (_, shape) in slices[0].items()
    }


def references(answers: Sequence[Trained]) -> dict[str, Tensor]:
    return weights([answer.reference for answer in answers])


def policies(answers: Sequence[Trained]) -> dict[str, Tensor]:
    return weights([answer.policy for answer in answers])


def assert_same(found: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    assert [name for name in expected if not torch.equal(found[name], expected[name])] == []


def test_every_other_update_the_reference_becomes_the_policy(
    ranks: RankProcesses, tiny_model: Path, steps: list[Batch]
) -> None:
    config = config_of(tiny_model, {"every": 2})
    start, two, three = (run(ranks, config, steps[:count]) for count in (1, 2, 3))
    assert_same(references(start), policies(run(ranks, config, [])))
    assert_same(references(two), policies(two))
    assert_same(references(three), policies(two))
    assert any(not torch.equal(policies(three)[name], tensor) for name, tensor in policies(two).items())
    # The third step's own pass of the reference is with the new weights, also those that ranks keep whole.
    kl = [sum(answer.kl[number] for answer in three) for number in range(3)]
    assert kl[0] == pytest.approx(0, abs=1e-9) and kl[1] > 1e-6 and kl[2] == pytest.approx(0, abs=1e-9)


def test_a_moving_average_by_its_formula_and_offloaded(
    ranks: RankProcesses, tiny_model: Path, steps: list[Batch]
) -> None:
    """π_ref ← 0.25 π_θ + 0.75 π_ref after each update."""
    options = {"every": 1, "mix": 0.25}
    config = config_of(tiny_model, options)
    after = [run(ranks, config, steps[:count]) for count in range(3)]
    expected = policies(after[0])
    for answers in after[1:]:
        expected = {name: mean.lerp(policies(answers)[name], 0.25) for name, mean in expected.items()}
        assert_same(references(answers), expected)
    offloaded = config_of(
        tiny_model, options, trainer={"offload_parameters": True, "offload_optimizer": True}
    )
    assert_same(references(run(ranks, offloaded, steps[:2])), references(after[2]))


def test_in_bfloat16_small_steps_are_not_lost(
    ranks: RankProcesses, tiny_model: Path, steps: list[Batch]
) -> None:
    """The mean is kept in float32 and rounded once; added up in bfloat16 it would be rounded at each step."""
    config = config_of(tiny_model, {"every": 1, "mix": 0.5})
    config.model.dtype = "bfloat16"
    after = [run(ranks, config, steps[:count]) for count in range(4)]
    exact = {name: tensor.float() for name, tensor in policies(after[0]).items()}
    for answers in after[1:]:
        exact = {name: mean.lerp(policies(answers)[name].float(), 0.5) for name, mean in exact.items()}
    assert_same(references(after[3]), {name: mean.bfloat16() for name, mean in exact.items()})


def test_a_resumed_run_is_the_same_to_the_last_bit(
    ranks: RankProcesses, tiny_model: Path, steps: list[Batch], tmp_path: Path
) -> None:
    config = config_of(tiny_model, {"every": 3, "mix": 0.5}, algorithm=ADAPTIVE)
    whole = run(ranks, config, steps)
    first = run(ranks, config, steps[:2], tmp_path)
    second = run(ranks, config, steps[2:], None, tmp_path)
    assert_same(policies(second), policies(whole))
    assert_same(references(second), references(whole))
    for rank in range(NUM_RANKS):
        assert second[rank].said == []
        assert first[rank].coefficients + second[rank].coefficients == whole[rank].coefficients
    used = whole[0].coefficients
    assert used == whole[1].coefficients and len({of_step["policy/kl_coef"] for of_step in used}) == 4
    assert [of_step["policy/entropy_coef"] for of_step in used] == pytest.approx([0, 0.002, 0.004, 0.006])


def test_a_checkpoint_without_a_reference_says_so_and_other_ranks_cut_it_again(
    ranks: RankProcesses, tiny_model: Path, steps: list[Batch], tmp_path: Path
) -> None:
    moving = config_of(tiny_model, {"every": 1, "mix": 0.5})
    saved = run(ranks, moving, steps[:2], tmp_path / "moving")
    with RankProcesses(1) as alone:
        single = config_of(tiny_model, {"every": 1, "mix": 0.5}, num_ranks=1)
        [one] = run(alone, single, [], None, tmp_path / "moving")
    assert_same(weights([one.reference]), references(saved))
    run(ranks, config_of(tiny_model, {}), steps[:1], tmp_path / "fixed")
    answers = run(ranks, moving, [], None, tmp_path / "fixed")
    assert answers[0].said == ["the checkpoint has no reference: it begins at model.path again"]
