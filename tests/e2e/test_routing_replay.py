"""Routing replay: the trainer computes with the experts that the engine chose (generator.routing_replay).

The engine's routers are a little off from the trainer's, as an engine's rounding in bfloat16 is: where two
experts are nearly tied, the two choose otherwise.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import torch
from builders import family_config, make_config, observe, random_image
from engine_pairs import EnginePair, open_pair
from safetensors.torch import load_file, save_file
from whole_runs import metrics, run

from vlrl.errors import EngineError
from vlrl.rollout.session import Session
from vlrl.run.parity import require_parity
from vlrl.types import Group, Sampling


@dataclass(frozen=True)
class Off:
    """What of an engine's routers is off by how much, and how far apart replay may leave the two, in nats."""

    name: str
    noise: float
    tolerance: float


OFF = {
    "qwen3_vl_moe": Off("mlp.gate.weight", 3e-4, 1e-2),  # beside weights of 0.055
    "qwen3_5_moe": Off("mlp.gate.weight", 1e-3, 5e-2),
    "glm4v_moe": Off("mlp.gate.e_score_correction_bias", 0.1, 1e-4),  # by which only the choice is made
}
FAMILIES = [
    "qwen3_vl_moe",
    *(pytest.param(name, marks=pytest.mark.slow(together=True)) for name in ("qwen3_5_moe", "glm4v_moe")),
]


def generate(pair: EnginePair) -> list[Group]:
    """Groups of three, of prompts with and without images."""
    image = random_image(70, 150, 1)
    return pair.generate(
        [
            ["Add 3 and 4."],
            [image, "Which?"],
            ["left ", image, " right ", random_image(120, 64, 2), "?"],
        ]
    )


def without_choices(groups: Sequence[Group]) -> list[Group]:
    """The same episodes as if nothing had been recorded."""
    return [
        Group(
            [
                replace(t, ledgers=tuple(replace(each, routed_experts=None) for each in t.ledgers))
                for t in group.trajectories
            ]
        )
        for group in groups
    ]


@pytest.fixture(scope="module", params=FAMILIES)
def engines(
    request: pytest.FixtureRequest,
    tiny_family: Callable[[str], Path],
    local_ray: None,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[EnginePair, Off]]:
    start, off = tiny_family(request.param), OFF[request.param]
    folder = tmp_path_factory.mktemp("off") / "model"
    shutil.copytree(start, folder)
    tensors, generator = load_file(folder / "model.safetensors"), torch.Generator().manual_seed(0)
    for name, tensor in tensors.items():
        if name.endswith(off.name):
            tensor += off.noise * torch.randn(tensor.shape, generator=generator)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    config = family_config(
        start, rollout={"group_size": 3, "max_tokens": 16}, generator={"routing_replay": True}
    )
    with open_pair(config, folder) as pair:
        yield pair, off


def test_with_the_engines_choices_both_agree_and_without_they_do_not(
    engines: tuple[EnginePair, Off],
) -> None:
    pair, off = engines
    groups = generate(pair)
    replayed, own = pair.differences(groups), pair.differences(without_choices(groups))
    print(f"nats apart: {replayed.largest:.1e} with replay, {own.largest:.1e} without")
    assert 10 * replayed.largest < own.largest
    parity = pair.config.parity.model_copy(update={"tolerance": off.tolerance})
    config = pair.config.model_copy(update={"parity": parity})
    require_parity(replayed, config, when="with replay")
    with pytest.raises(EngineError, match="disagree"):
        require_parity(own, config, when="without")


def test_later_turns_and_their_images_are_replayed_too(engines: tuple[EnginePair, Off]) -> None:
    pair, off = engines
    first, later = random_image(70, 150, 1), random_image(120, 64, 2)
    groups = []
    for number in range(12):
        session = Session(pair.sample(str(number), [first, "Which?"]), 0)
        for turn, seen in enumerate(([later], [], None)):
            sampling = Sampling(temperature=1.0, max_tokens=8, seed=10 * number + turn)
            pair.processor.act(session, asyncio.run(pair.policy.generate(session, sampling)))
            if seen is not None:
                observe(pair.processor, session, "And this?", seen)
        groups.append(Group([session.trajectory("", "ok", 0.0)]))
    [ledger] = groups[0].trajectories[0].ledgers
    assert ledger.routed_experts is not None
    assert len(ledger.routed_experts) == len(ledger.token_ids) - 1
    replayed, own = pair.differences(groups), pair.differences(without_choices(groups))
    assert replayed.largest < off.tolerance < own.largest


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["sync", "async"])
def test_a_run_of_two_ranks_replays(
    mode: str, tiny_family: Callable[[str], Path], local_ray: None, tmp_path: Path
) -> None:
    """A reference chooses its experts itself; in async mode weights change while it generates."""
    (tmp_path / "reward.py").write_text("def length(completion, answer):\n    return len(completion)\n")
    config = make_config(
        tiny_family("qwen3_vl_moe"),
        run={"name": mode, "dir": str(tmp_path)},
        data={"train": {"name": "digit_sum"}},
        rewards=[{"name": f"{tmp_path}/reward.py:length"}],
        generator={"routing_replay": True},
        trainer={"num_ranks": 2, "cpus_per_rank": 0.1, "router_aux_coef": 0.01},
        asynchronous={"mode": mode},
        episodes={"lockstep": mode == "sync"},
        algorithm={"kl_coef": 0.1},
        num_steps=3,
        checkpoint={"every": 0},
        logging={"tensorboard": False},
    )
    run(config)
    found = metrics(config)
    assert len(found) == 3 and all(step["optim/grad_norm"] > 0 for step in found)
    assert all(1.9 < step["policy/router_aux_loss"] < 4 for step in found), "of 4 experts 2 are chosen"
    fresh = [step["parity/max_abs_logprob_diff"] for step in found if "parity/max_abs_logprob_diff" in step]
    assert fresh and max(fresh) < 1e-4
