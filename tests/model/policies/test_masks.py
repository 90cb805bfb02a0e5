"""Two adapters on one model in one packed micro-batch against each adapter on a model of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from builders import make_group, open_tiny, random_image, row

from vlrl.config.learning.policies import PolicyConfig
from vlrl.config.memory import LoraConfig
from vlrl.errors import ConfigError, InternalError
from vlrl.model.logprobs import DeviceBatch, TreeLogprobs
from vlrl.model.lora import adapters_off, add_adapters, policy_of, save_adapters
from vlrl.packing.options import PackOptions
from vlrl.packing.pack import pack
from vlrl.types import Group

CPU = torch.device("cpu")
LORA = LoraConfig(rank=3, alpha=6.0, targets=["language_layers"], sync="adapter")
BOTH = {"giver": PolicyConfig(agents=["giver"]), "guesser": PolicyConfig(agents=["guesser"])}


def options(num_ranks: int = 1, max_tokens: int = 4096, **more: Any) -> PackOptions:
    return PackOptions(
        num_ranks=num_ranks,
        max_tokens=max_tokens,
        max_completion_tokens=8,
        policies={"giver": 0, "guesser": 1},
        **more,
    )


def loaded(path: Path) -> Any:
    from transformers import AutoModelForImageTextToText

    return AutoModelForImageTextToText.from_pretrained(path, attn_implementation="sdpa")


def model_with(path: Path, policies: Mapping[str, PolicyConfig]) -> Any:
    """The tiny model with adapters of which no half is zero."""
    model = loaded(path).requires_grad_(False)
    add_adapters(model, LORA, 0, policies)
    generator = torch.Generator().manual_seed(1)
    for name, parameter in adapters_of(model).items():
        if ".lora_B." in name:
            parameter.data = 0.3 * torch.randn(parameter.shape, generator=generator)
    return model.train()


def adapters_of(model: Any) -> dict[str, Any]:
    return {name: p for name, p in model.named_parameters() if ".lora_" in name}


@pytest.fixture(scope="module")
def both(tiny_model: Path) -> Any:
    return model_with(tiny_model, BOTH)


@pytest.fixture(scope="module")
def one(tiny_model: Path) -> Any:
    """A model with the one adapter of a run of one policy."""
    return model_with(tiny_model, {})


@pytest.fixture(scope="module")
def processor(tiny_model: Path) -> Any:
    return open_tiny(tiny_model)


@pytest.fixture(scope="module")
def groups(processor: Any) -> list[Group]:
    """Both agents are shown the same at first, so that only the policy tells their trees apart."""
    made = []
    for number, agent in enumerate(("giver", "guesser", "giver")):
        shown = row("Which?", [random_image(56, 84, seed=number // 2)], row_id=f"{number}/{agent}")
        sample = replace(processor.sample(shown), agent=agent)
        made.append(make_group([4, 3], sample=sample, advantages=[1.0, -1.5], seed=number))
    return made


def gradients(model: Any, groups: Sequence[Group], processor: Any, wanted: PackOptions) -> dict[str, Any]:
    """Gradients of a policy-gradient loss, a micro-batch after the other as a rank computes them."""
    wrapped = TreeLogprobs(model, temperature=1.0, banned_token_ids=processor.banned_token_ids)
    [batches] = pack(groups, processor.pixels, wanted)
    for batch in batches:
        device_batch = DeviceBatch.of(batch, CPU, processor.pixels)
        logprobs, _ = wrapped(device_batch)
        (logprobs * device_batch.weights * device_batch.advantages).sum().neg().backward()
    found = {name: p.grad.clone() for name, p in adapters_of(model).items() if p.grad is not None}
    model.zero_grad()
    return found


@pytest.mark.parametrize(("max_tokens", "recompute"), [(4096, False), (60, True)])
def test_each_adapter_learns_as_if_it_were_alone(
    both: Any, one: Any, processor: Any, groups: list[Group], max_tokens: int, recompute: bool
) -> None:
    """Weights of a policy's tokens, logprobs and the gradient are those of a run of that policy alone."""
    if recompute:
        both.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    try:
        together = gradients(both, groups, processor, options(max_tokens=max_tokens))
    finally:
        both.gradient_checkpointing_disable()
    for policy in BOTH:
        mine = {
            n.replace(policy, "default"): p for n, p in adapters_of(both).items() if policy_of(n) == policy
        }
        for name, parameter in adapters_of(one).items():
            parameter.data.copy_(mine[name].data)
        own = [group for group in groups if group.agent == policy]
        alone = gradients(one, own, processor, replace(options(), policies={}))
        assert alone.keys() == mine.keys()
        for name, expected in alone.items():
            assert bool(expected.any())
            found = together[name.replace("default", policy)]
            assert torch.allclose(found, expected, atol=1e-6, rtol=1e-4), name


def test_the_tokens_of_one_policy_leave_the_other_adapter_without_a_gradient(
    both: Any, processor: Any, groups: list[Group]
) -> None:
    for name, grad in gradients(both, groups[:1], processor, options()).items():
        assert bool(grad.any()) == (policy_of(name) == "giver"), name


def test_the_same_prompt_of_two_policies_is_two_trees(processor: Any, groups: list[Group]) -> None:
    [[mixed]] = pack(groups[:2], processor.pixels, options())
    [[shared]] = pack(groups[:2], processor.pixels, replace(options(), policies={}))
    assert mixed.policy_ids is not None
    assert shared.policy_ids is None
    prompt = len(groups[0].trajectories[0].sample.prompt.token_ids)
    assert len(mixed.input_ids) == len(shared.input_ids) + prompt
    assert set(mixed.policy_ids.tolist()) == {0, 1}
    of_targets = mixed.policy_ids[mixed.source_index]
    agents = [mixed.token_sample_ids[i].partition("/")[2] for i in mixed.sequence_ids]
    assert [("giver", "guesser")[policy] for policy in of_targets] == agents
    for policy in (0, 1):  # each policy's loss is a mean over its own tokens
        assert mixed.weights[of_targets == policy].sum() == pytest.approx(1.0)


def test_a_slice_of_a_sequence_has_its_own_tokens_policies(processor: Any, groups: list[Group]) -> None:
    [[whole]] = pack(groups, processor.pixels, options())
    slices = pack(groups, processor.pixels, options(num_ranks=2, sequence_parallel=2))
    parts = [of_rank[0].policy_ids for of_rank in slices]
    assert whole.policy_ids is not None
    assert np.concatenate(parts).tolist() == whole.policy_ids.tolist()  # type: ignore[arg-type]


def test_with_adapters_off_it_is_the_starting_model(
    tiny_model: Path, both: Any, processor: Any, groups: list[Group]
) -> None:
    [[batch]] = pack(groups, processor.pixels, options())
    device_batch = DeviceBatch.of(batch, CPU, processor.pixels)
    found = []
    for model in (loaded(tiny_model), both):
        wrapped = TreeLogprobs(model, temperature=1.0, banned_token_ids=processor.banned_token_ids)
        with torch.no_grad(), adapters_off(model):
            found.append(wrapped(device_batch)[0])
    assert torch.equal(*found)
    with torch.no_grad():
        assert not torch.allclose(wrapped(device_batch)[0], found[0])


def test_a_saved_adapter_is_its_policy_on_the_starting_model(
    tiny_model: Path, both: Any, processor: Any, groups: list[Group], tmp_path: Path
) -> None:
    """Read by peft, from the folder of its name."""
    from peft import PeftModel

    save_adapters(both, {name: p.detach() for name, p in adapters_of(both).items()}, tmp_path)
    assert sorted(folder.name for folder in tmp_path.iterdir()) == ["giver", "guesser"]
    for policy in BOTH:
        [[batch]] = pack([g for g in groups if g.agent == policy], processor.pixels, options())
        device_batch, found = DeviceBatch.of(batch, CPU, processor.pixels), []
        read = PeftModel.from_pretrained(loaded(tiny_model), tmp_path / policy).base_model.model
        for model in (both, read):
            wrapped = TreeLogprobs(model, temperature=1.0, banned_token_ids=processor.banned_token_ids)
            with torch.no_grad():
                found.append(wrapped(device_batch)[0])
        assert torch.allclose(*found, atol=1e-5)


def test_a_frozen_copy_is_not_trained(tiny_model: Path) -> None:
    older = {**BOTH, "older": PolicyConfig(agents=["second"], copies="giver")}
    trained = {policy_of(n): p.requires_grad for n, p in adapters_of(model_with(tiny_model, older)).items()}
    assert trained == {"giver": True, "guesser": True, "older": False}


def test_tokens_whose_policy_is_not_known_are_refused(both: Any, processor: Any, groups: list[Group]) -> None:
    [[batch]] = pack(groups, processor.pixels, replace(options(), policies={}))
    model = TreeLogprobs(both, temperature=1.0, banned_token_ids=[])
    with pytest.raises(InternalError, match="policies were not packed"):
        model(DeviceBatch.of(batch, CPU, processor.pixels))


def test_a_micro_batch_of_ignored_tokens_alone_passes(both: Any, processor: Any) -> None:
    [[batch]] = pack([], processor.pixels, options())
    model = TreeLogprobs(both, temperature=1.0, banned_token_ids=[])
    logprobs, _ = model(DeviceBatch.of(batch, CPU, processor.pixels))
    (logprobs.sum() + 0.0).backward()


def test_an_agent_of_no_policy_is_named(processor: Any, groups: list[Group]) -> None:
    with pytest.raises(ConfigError, match="agent 'giver' is played by no policy, and policies name other"):
        pack(groups, processor.pixels, replace(options(), policies={"other": 0}))


def test_layers_of_the_tower_are_refused(tiny_model: Path) -> None:
    with pytest.raises(ConfigError, match=r"visual\..*computed once for all policies"):
        add_adapters(loaded(tiny_model), LORA.model_copy(update={"targets": ["*.visual.*"]}), 0, BOTH)
