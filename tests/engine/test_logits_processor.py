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


def ban(runner: str, banned: list[int]) -> Any:
    """The processor as a model runner loads and builds it, from what an engine is given."""
    arguments = engine_arguments(make_config("m"), banned, {}, on_gpu=True)
    names, config = arguments["logits_processors"], SimpleNamespace(**arguments)
    if runner == "V1":
        (kind,) = v1._load_logitsprocs_by_fqcns(names)
        return kind(config, CPU, False)
    (kind,) = v2._load_v2_logitsprocs_by_fqcns(names)
    return kind(config, SimpleNamespace(device=CPU))


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
