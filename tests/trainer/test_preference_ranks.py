"""A step on pairs by real ranks: one, two that deal the pairs out, and two that share each sequence."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders import make_config, open_tiny
from rank_processes import RankProcesses, free_port

from vlrl.algorithm.preferences.tokens import COLUMNS, PreferenceObjective, preference_metrics
from vlrl.batch import MicroBatch
from vlrl.config import Config
from vlrl.config.learning.preferences import PreferencesConfig
from vlrl.envs.visual.questions.digit_sum import DigitSum
from vlrl.packing.options import PackOptions
from vlrl.packing.pack import pack
from vlrl.preferences import preference_groups

NUM_PAIRS = 5
LAYOUTS = {"one": (1, 1), "two": (2, 1), "sliced": (2, 2)}
SLOW = pytest.mark.slow(together=True)


def stepped(
    config: Config, rank: int, port: int, mine: Sequence[MicroBatch]
) -> tuple[list[Any], float, dict[str, np.ndarray]]:
    """Sums before a step, in it and after it; the gradient's norm; and this rank's slices of the weights."""
    from vlrl.model.lora import slice_of
    from vlrl.trainer.rank import TrainerRank

    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    running = TrainerRank(config, [], rank, ("127.0.0.1", port))
    running.start()
    assert config.preferences is not None
    objective = PreferenceObjective(config.preferences)
    before = running.measure(mine, objective)
    result = running.step(mine, objective, 1e-2)
    after = running.measure(mine, objective)
    model = running._engine.module.model
    slices = {name: slice_of(p).float().clone().numpy() for name, p in model.named_parameters()}
    return [before, result.sums, after], result.grad_norm, slices


Processes = Mapping[int, RankProcesses]
"""Ranks by how many there are."""


@pytest.fixture(scope="module")
def processes() -> Iterator[Processes]:
    with RankProcesses(1) as one, RankProcesses(2) as two:
        yield {1: one, 2: two}


def run(
    processes: Processes, model: Path, layout: str, **sections: Any
) -> tuple[list[Any], float, dict[str, np.ndarray]]:
    """The same of all ranks: sums added up, slices of a weight one after the other, cut to its size."""
    num_ranks, slices = LAYOUTS[layout]
    config = make_config(
        model,
        trainer={
            "num_ranks": num_ranks,
            "sequence_parallel": slices,
            "max_tokens_per_micro_batch": 128,
            "timeout_s": 120,
        },
        generator={"max_model_len": 128},
        **sections,
    )
    processor = open_tiny(model)
    rows = [{**DigitSum()[i], "rejected": f"<answer>{i}</answer>"} for i in range(NUM_PAIRS)]
    assert config.preferences is not None
    groups = preference_groups([processor.sample(row) for row in rows], processor, config.preferences)
    batch = pack(groups, processor.pixels, PackOptions.of(config))
    port = free_port()
    found = processes[num_ranks].run(stepped, [(config, rank, port, mine) for rank, mine in enumerate(batch)])
    sums = [sum(of_rank[1:], of_rank[0]) for of_rank in zip(*(each[0] for each in found), strict=True)]
    whole = {name: np.concatenate([each[2][name].ravel() for each in found]) for name in found[0][2]}
    return sums, found[0][1], whole


@pytest.fixture(
    scope="module", params=["dpo", *(pytest.param(loss, marks=SLOW) for loss in ("kto", "bradley_terry"))]
)
def options(request: pytest.FixtureRequest) -> PreferencesConfig:
    return PreferencesConfig(loss=request.param)


@pytest.fixture(scope="module")
def runs(processes: Processes, options: PreferencesConfig, tiny_model: Path) -> dict[str, Any]:
    preferences = {"loss": options.loss.name}
    return {name: run(processes, tiny_model, name, preferences=preferences) for name in LAYOUTS}


def test_before_a_step_all_are_ties_and_the_step_tells_them_apart(
    runs: dict[str, Any], options: PreferencesConfig
) -> None:
    (before, _, after), _, _ = runs["one"]
    first, last = (preference_metrics(sums.groups, options) for sums in (before, after))
    if not options.is_scored:  # of which the start is no reference, but a random head
        assert first["preference/accuracy"] == 0.5
        assert first["preference/margin"] == pytest.approx(0.0, abs=1e-6)
    assert last["preference/loss"] < first["preference/loss"]
    assert last["preference/margin"] > 0


@pytest.mark.parametrize("layout", ["two", "sliced"])
def test_ranks_and_slices_change_nothing_but_rounding(runs: dict[str, Any], layout: str) -> None:
    """The gradient is that of one rank, and so is what is measured before and after the update."""
    expected, found = runs["one"], runs[layout]
    assert found[1] == pytest.approx(expected[1], rel=1e-4)
    for ours, one in zip(found[0], expected[0], strict=True):
        assert ours.groups == pytest.approx(one.groups, rel=1e-3, abs=1e-3)
        assert ours.loss == pytest.approx(one.loss, rel=1e-4)
        assert ours.kl_of_others == pytest.approx(one.kl_of_others, abs=1e-3)
    assert found[0][1].groups[COLUMNS.index("groups")] == pytest.approx(
        expected[0][1].groups[COLUMNS.index("groups")], abs=1e-4
    )


def test_adapters_off_are_the_reference(processes: Processes, tiny_model: Path) -> None:
    lora = {"rank": 4, "alpha": 8, "targets": ["language_layers"]}
    (before, _, after), norm, _ = run(processes, tiny_model, "two", preferences={}, lora=lora)
    assert norm > 0
    dpo = PreferencesConfig()
    assert preference_metrics(before.groups, dpo)["preference/accuracy"] == 0.5
    assert preference_metrics(after.groups, dpo)["preference/margin"] > 0
