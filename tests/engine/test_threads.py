"""A step of a CPU engine is computed by as many threads as its work is worth."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
import torch
from tiny_families import BUILDERS
from transformers import AutoConfig
from vllm.transformers_utils.config import get_hf_text_config

from vlrl.engine.cpu.threads import SHARED_FROM, layer_operations, share_large_steps
from vlrl.engine.worker import WorkerExtension

TEXT = SimpleNamespace(hidden_size=100, intermediate_size=200)
OF_TOKEN = 200_000
NUM_THREADS = 3


@pytest.fixture(autouse=True)
def threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(NUM_THREADS)
    yield
    torch.set_num_threads(before)


class Runner:
    """Stands in for vLLM's: notes with how many threads each step is computed."""

    def __init__(self, device: str = "cpu", text: Any = TEXT) -> None:
        self.device = torch.device(device)
        self.model_config = SimpleNamespace(hf_text_config=text)
        self.seen: list[int] = []

    def execute_model(self, scheduled: Any, intermediate_tensors: None = None) -> str:
        self.seen.append(torch.get_num_threads())
        return f"output of {scheduled.total_num_scheduled_tokens}"

    def get_model(self) -> object:
        return object()


def step(num_tokens: int, *images: int) -> Any:
    return SimpleNamespace(
        total_num_scheduled_tokens=num_tokens, scheduled_encoder_inputs={"a": list(images)} if images else {}
    )


def test_small_steps_have_one_thread_and_all_others_what_there_is() -> None:
    runner, most = Runner(), int(SHARED_FROM / OF_TOKEN)
    share_large_steps(runner)
    outputs = [runner.execute_model(step(n)) for n in (1, most, most - 1, 0)]
    runner.execute_model(step(1, 0), None)
    assert runner.seen == [1, NUM_THREADS, 1, 1, NUM_THREADS]
    assert outputs[1] == f"output of {most}"
    assert torch.get_num_threads() == NUM_THREADS


def test_reading_large_weights_is_work_for_all_threads() -> None:
    """One request of a model of 1.5 billion parameters."""
    runner = Runner(text=SimpleNamespace(hidden_size=1536, intermediate_size=8960))
    share_large_steps(runner)
    runner.execute_model(step(1))
    assert runner.seen == [NUM_THREADS]


def test_threads_come_back_after_a_step_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    runner = Runner()
    monkeypatch.setattr(runner, "execute_model", Mock(side_effect=RuntimeError("out of memory")))
    share_large_steps(runner)
    with pytest.raises(RuntimeError, match="out of memory"):
        runner.execute_model(step(1))
    assert torch.get_num_threads() == NUM_THREADS


def test_vllms_refusal_to_change_threads_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    runner = Runner()
    share_large_steps(runner)
    monkeypatch.setattr(torch, "set_num_threads", lambda number: None)
    runner.execute_model(step(1))
    assert runner.seen == [1]


@pytest.mark.parametrize(("device", "seen"), [("cpu", [1]), ("cuda", [NUM_THREADS])])
def test_engines_on_a_cpu_do_so(device: str, seen: list[int]) -> None:
    runner = Runner(device)
    WorkerExtension.correct_model(SimpleNamespace(model_runner=runner))  # type: ignore[arg-type]
    runner.execute_model(step(1))
    assert runner.seen == seen


@pytest.mark.parametrize("name", ["num_experts", "num_local_experts", "n_routed_experts"])
def test_all_experts_count(name: str) -> None:
    dense = layer_operations(TEXT)
    assert dense == OF_TOKEN
    experts = SimpleNamespace(**vars(TEXT), moe_intermediate_size=50, num_experts_per_tok=1, **{name: 4})
    assert layer_operations(experts) == dense


@pytest.mark.parametrize("family", sorted(BUILDERS))
def test_every_family_says_how_large_its_layers_are(family: str, tiny_family: Callable[[str], Path]) -> None:
    config = AutoConfig.from_pretrained(tiny_family(family))
    assert layer_operations(get_hf_text_config(config)) > 0
