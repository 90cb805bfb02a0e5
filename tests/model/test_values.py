"""A critic's values in a prefix tree against plain rows, its gradient, and its head."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from builders import make_group, open_tiny, random_image, row

from vlrl.model.logprobs import DeviceBatch
from vlrl.model.values import TreeValues, ValueHead
from vlrl.packing.options import PackOptions
from vlrl.packing.pack import pack
from vlrl.types import Group

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def processor(tiny_model: Path) -> Any:
    return open_tiny(tiny_model)


@pytest.fixture
def critic(tiny_model: Path) -> TreeValues:
    from transformers import AutoModelForImageTextToText

    model = AutoModelForImageTextToText.from_pretrained(tiny_model, attn_implementation="sdpa")
    found = TreeValues(model)
    with torch.no_grad():
        generator = torch.Generator().manual_seed(0)
        found.head.weight.copy_(torch.randn(found.head.weight.shape, generator=generator))
        found.head.bias.fill_(0.5)
    return found


def group(processor: Any) -> Group:
    sample = processor.sample(row("What is this?", [random_image(56, 84)]))
    return make_group([4, 2, 3], sample=sample, seed=1)


def batch_of(processor: Any) -> DeviceBatch:
    options = PackOptions(num_ranks=1, max_tokens=1000, max_completion_tokens=8)
    [[micro_batch]] = pack([group(processor)], processor.pixels, options)
    return DeviceBatch.of(micro_batch, CPU)


def plain_values(critic: TreeValues, processor: Any) -> torch.Tensor:
    """The value of each token where it is predicted, one row a completion through transformers."""
    core, found = critic.model.model, []
    for trajectory in group(processor).trajectories:
        [ledger] = trajectory.ledgers
        ids = torch.tensor(ledger.token_ids)[None]
        inputs = {k: torch.tensor(v) for k, v in processor.pixels(ledger.media).items()}
        inputs["mm_token_type_ids"] = (ids == core.config.image_token_id).int()
        hidden = core(input_ids=ids, **inputs).last_hidden_state[0]
        values = hidden @ critic.head.weight + critic.head.bias
        found.append(values[torch.tensor(ledger.loss_mask).nonzero()[:, 0] - 1])
    return torch.cat(found)


def test_values_in_a_tree_are_those_of_plain_rows(critic: TreeValues, processor: Any) -> None:
    expected = plain_values(critic, processor)
    found = critic(batch_of(processor))
    assert torch.allclose(found, expected, atol=1e-4) and found.shape == (9,)
    assert found.dtype == torch.float32 and found.std() > 0.1


def test_its_gradient_is_that_of_plain_rows(critic: TreeValues, processor: Any) -> None:
    gradients = []
    for values in (critic(batch_of(processor)), plain_values(critic, processor)):
        critic.zero_grad()
        values.square().sum().backward()
        gradients.append({n: p.grad.clone() for n, p in critic.named_parameters() if p.grad is not None})
    assert gradients[0].keys() == gradients[1].keys() == dict(critic.named_parameters()).keys()
    for name, expected in gradients[1].items():
        assert torch.allclose(
            gradients[0][name], expected, rtol=1e-3, atol=1e-3 * float(expected.abs().max())
        )


def test_the_policys_head_is_gone_and_values_begin_at_0(tiny_model: Path, processor: Any) -> None:
    from transformers import AutoModelForImageTextToText

    found = TreeValues(AutoModelForImageTextToText.from_pretrained(tiny_model))
    assert not [name for name, _ in found.named_parameters() if "lm_head" in name]
    assert not found(batch_of(processor)).any()


def test_the_head_adds_up_in_float32() -> None:
    head = ValueHead(4096, torch.bfloat16)
    with torch.no_grad():
        head.weight.fill_(1.0)
    hidden = torch.ones(2, 4096, dtype=torch.bfloat16)
    hidden[1, 0] = 2.0
    assert head(hidden).tolist() == [4096.0, 4097.0]  # bfloat16 would round both to 4096
