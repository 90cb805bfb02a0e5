"""The token ban is taken by the loaders of both of vLLM's model runners, and does the same in both."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from builders import make_config
from vllm.v1.sample import logits_processor as v1
from vllm.v1.worker.gpu.sample.logits_processor import loader as v2

from vlrl.engine.arguments import engine_arguments

VOCAB = 7
CPU = torch.device("cpu")


def ban(runner: str, banned: list[int], device: torch.device = CPU) -> Any:
    """The processor as a model runner loads and builds it, from what an engine is given."""
    arguments = engine_arguments(make_config("m"), banned, {}, on_gpu=True)
    names, config = arguments["logits_processors"], SimpleNamespace(**arguments)
    if runner == "V1":
        (kind,) = v1._load_logitsprocs_by_fqcns(names)
        return kind(config, device, False)
    (kind,) = v2._load_v2_logitsprocs_by_fqcns(names)
    return kind(config, SimpleNamespace(device=device))


@pytest.mark.parametrize("banned", [[], [2], [0, 3, 6]])
def test_both_runners_ban_the_same_tokens_and_change_no_other(banned: list[int]) -> None:
    logits = torch.randn(3, VOCAB)
    first = ban("V1", banned).apply(logits.clone())
    second = ban("V2", banned).apply(logits.clone(), SimpleNamespace())
    assert torch.equal(first, second)
    assert torch.isneginf(first[:, banned]).all()
    others = [i for i in range(VOCAB) if i not in banned]
    assert torch.equal(first[:, others], logits[:, others])


def test_it_acts_on_every_request_of_both_runners() -> None:
    """V1 skips a processor that cannot change a greedy choice, V2 one that declines a request."""
    assert not ban("V1", [1]).is_argmax_invariant()
    assert ban("V2", [1]).add_request(0, None)
    ban("V2", [1]).apply_staged_writes()
    ban("V1", [1]).update_state(None)


@pytest.mark.parametrize("runner", ["V1", "V2"])
def test_it_outlives_the_device_s_memory(runner: str) -> None:
    """V2 builds processors while it loads the model, in the pool that sleep level 2 gives up without a copy.

    What torch puts on its meta device has lost its values in the same way.
    """
    logits = ban(runner, [2, 5], torch.device("meta")).apply(torch.zeros(3, VOCAB))
    assert torch.isneginf(logits).sum(0).tolist() == [0, 0, 3, 0, 0, 3, 0]
