"""The recorder of experts' choices on a worker that computes what the test says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from vlrl.engine.cpu.routed_experts import ExpertRecorder
from vlrl.engine.requests import EngineRequest, generation_of
from vlrl.errors import ConfigError, EngineError
from vlrl.types import Sampling

NUM_LAYERS = 3
WITH_EXPERTS = (1, 2)


class Router:
    def set_capture_fn(self, capture: Callable[[torch.Tensor], None]) -> None:
        self.capture = capture


class Runner:
    """Chooses experts (10 · layer + position, generation of the weights) for each token of a step."""

    def __init__(self) -> None:
        self.model_config = SimpleNamespace(
            get_total_num_hidden_layers=lambda: NUM_LAYERS, get_num_experts=lambda: 64
        )
        self.input_batch = SimpleNamespace(req_ids=[], num_computed_tokens_cpu=np.zeros(8, np.int64))
        self.weights = 0
        self._model = nn.Module()
        self._model.layers = nn.ModuleList(nn.Module() for _ in range(NUM_LAYERS))
        for number in WITH_EXPERTS:
            layer = self._model.layers[number]
            layer.mlp = nn.Module()
            layer.mlp.experts = nn.Module()
            layer.mlp.experts.router = Router()

    def get_model(self) -> nn.Module:
        return self._model

    def execute_model(self, scheduled: Any) -> str:
        """The batch's order is not the schedule's."""
        starts = scheduled.starts
        self.input_batch.req_ids = sorted(scheduled.num_scheduled_tokens)
        positions: list[int] = []
        for index, request in enumerate(self.input_batch.req_ids):
            self.input_batch.num_computed_tokens_cpu[index] = starts[request]
            count = scheduled.num_scheduled_tokens[request]
            positions += range(starts[request], starts[request] + count)
        for number in WITH_EXPERTS if positions else ():
            layer: Any = self._model.layers[number]
            chosen = [[10 * number + position, self.weights] for position in positions]
            layer.mlp.experts.router.capture(torch.tensor(chosen, dtype=torch.int32))
        return "output"


class Worker(ExpertRecorder):
    def __init__(self) -> None:
        self.model_runner = Runner()
        self.record_experts()

    def step(self, spans: Mapping[str, tuple[int, int]], finished: set[str] | None = None) -> None:
        """Compute tokens [start, end) of each request."""
        counts = {name: end - start for name, (start, end) in spans.items()}
        scheduled = SimpleNamespace(
            num_scheduled_tokens=counts,
            starts={name: start for name, (start, _) in spans.items()},
            finished_req_ids=finished or set(),
        )
        assert self.model_runner.execute_model(scheduled) == "output"


def test_each_request_has_the_rows_of_its_own_tokens() -> None:
    worker = Worker()
    worker.step({"b-2-aaaaaaaa": (0, 3), "a-1-bbbbbbbb": (0, 2)})
    worker.step({"a-1-bbbbbbbb": (2, 3), "b-2-aaaaaaaa": (3, 4)})
    [a, b] = worker.take_experts(["a-1", "b-2"])
    assert a.shape == (3, NUM_LAYERS, 2) and b.shape == (4, NUM_LAYERS, 2)
    assert a.dtype == np.uint8
    assert b[:, 1, 0].tolist() == [10, 11, 12, 13] and b[:, 2, 0].tolist() == [20, 21, 22, 23]
    assert not a[:, 0].any()  # a layer without experts


def test_a_token_that_is_computed_again_keeps_its_first_choice() -> None:
    worker = Worker()
    worker.step({"a-aaaaaaaa": (0, 3)})
    worker.step({"a-aaaaaaaa": (3, 4)})
    worker.model_runner.weights = 1
    worker.step({"a-aaaaaaaa": (0, 5)})  # after an update, with the token that was sampled last
    worker.step({"a-aaaaaaaa": (5, 6)})
    [rows] = worker.take_experts(["a"])
    assert rows[:, 1].tolist() == [[10, 0], [11, 0], [12, 0], [13, 0], [14, 1], [15, 1]]


def test_a_prompt_computed_in_pieces_again_is_not_counted_twice() -> None:
    worker = Worker()
    worker.step({"a-aaaaaaaa": (0, 4)})
    worker.step({"a-aaaaaaaa": (0, 2)})
    worker.step({"a-aaaaaaaa": (2, 6)})
    [rows] = worker.take_experts(["a"])
    assert rows[:, 1, 0].tolist() == [10, 11, 12, 13, 14, 15]


def test_requests_that_are_given_up_are_forgotten() -> None:
    worker = Worker()
    worker.step({"a-aaaaaaaa": (0, 4), "b-bbbbbbbb": (0, 4)})
    worker.step({}, finished={"a-aaaaaaaa"})
    worker.step({"b-bbbbbbbb": (4, 5), "a-cccccccc": (0, 2)})
    assert [len(rows) for rows in worker.take_experts(["a", "b"])] == [2, 5]


def test_a_model_without_experts_is_refused() -> None:
    worker = Worker()
    for number in WITH_EXPERTS:
        del worker.model_runner.get_model().layers[number].mlp  # type: ignore[union-attr]
    with pytest.raises(ConfigError, match="the model has no experts"):
        worker.record_experts()


@pytest.mark.parametrize("num_rows", [4, 5, 3, 6])
def test_choices_that_vllm_returns_must_be_of_every_input(num_rows: int) -> None:
    """A row for the last token, which was no input, does no harm."""
    ids = np.array([5, 6, 7])
    request = EngineRequest("a", "a", ids, ids, (), Sampling(temperature=1.0, max_tokens=2, seed=0))
    completion = SimpleNamespace(
        token_ids=[8, 9],
        logprobs=SimpleNamespace(logprobs=[-1.0, -2.0]),
        weight_versions=[],
        finish_reason="stop",
        routed_experts=np.arange(num_rows, dtype=np.uint8).reshape(-1, 1, 1),
    )
    output = SimpleNamespace(prompt_token_ids=[5, 6, 7], outputs=[completion])
    if num_rows not in (4, 5):
        with pytest.raises(EngineError, match=f"choices of experts for {num_rows} of 4 tokens"):
            generation_of(output, request)
        return
    found = generation_of(output, request).routed_experts
    assert found is not None and found.ravel().tolist() == [0, 1, 2, 3]
