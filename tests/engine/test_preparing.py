"""Requests that join others: their images are prepared while the others go on."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from builders import make_config

from vlrl.engine.engine import Engine
from vlrl.engine.requests import EngineRequest, GenerationResult
from vlrl.errors import EngineError
from vlrl.types import Generation, Sampling

PATIENCE_S = 60


class FakeVllm:
    """vLLM's part: a request is done after a number of steps; a prompt of two tokens is prepared when told.

    Attributes:
        added: names of requests, as they came.
        aborted: those given up.
    """

    def __init__(self, num_steps: int) -> None:
        self.renderer = self
        self.stepped, self.may_prepare, self.preparing = (
            threading.Semaphore(0),
            threading.Event(),
            threading.Event(),
        )
        self.added: list[str] = []
        self.aborted: list[str] = []
        self._left: dict[str, int] = {}
        self._prompts: dict[str, Any] = {}
        self._num_steps = num_steps
        core = SimpleNamespace(
            scheduler=SimpleNamespace(kv_cache_manager=SimpleNamespace(usage=0), waiting=[])
        )
        self.engine_core = SimpleNamespace(engine_core=core)

    def render_cmpl(self, prompts: list[dict[str, Any]], *, skip_mm_cache: bool) -> list[Any]:
        [prompt] = prompts
        if len(prompt["prompt_token_ids"]) == 2:
            self.preparing.set()
            assert self.may_prepare.wait(PATIENCE_S)
        return [prompt["prompt_token_ids"]]

    def add_request(self, name: str, prompt: Any, params: Any, lora_request: Any) -> None:
        self.added.append(name)
        self._left[name], self._prompts[name] = self._num_steps, prompt

    def abort_request(self, names: list[str]) -> None:
        self.aborted += names
        for name in names:
            del self._left[name]

    def step(self) -> list[Any]:
        self._left = {name: left - 1 for name, left in self._left.items()}
        self.stepped.release()
        done = [name for name, left in self._left.items() if not left]
        return [self._output(name) for name in done if self._left.pop(name) == 0]

    def _output(self, name: str) -> Any:
        completion = SimpleNamespace(
            token_ids=[7], logprobs=SimpleNamespace(logprobs=[-1.0]), weight_versions=[], finish_reason="stop"
        )
        completion.routed_experts = None
        prompt = self._prompts[name]
        return SimpleNamespace(request_id=name, finished=True, prompt_token_ids=prompt, outputs=[completion])


def request(name: str, num_tokens: int) -> EngineRequest:
    ids = np.arange(num_tokens)
    return EngineRequest(name, name, ids, ids, (), Sampling(temperature=1.0, max_tokens=4, seed=0))


@pytest.fixture
def engine_of(monkeypatch: pytest.MonkeyPatch) -> Any:
    """An engine on a fake of vLLM, and without Ray."""
    monkeypatch.setattr("vlrl.engine.engine.fetch_media", dict)
    monkeypatch.setattr("vlrl.engine.engine.sampling_params", lambda *_: None)

    def make(vllm: FakeVllm) -> Engine:
        engine = Engine(make_config(), [], [], {})
        engine.run(lambda: setattr(engine, "_engine", vllm)).result(PATIENCE_S)
        return engine

    return make


class Results:
    """What requests became, by name."""

    def __init__(self) -> None:
        self._found: dict[str, GenerationResult] = {}
        self._all = threading.Condition()

    def of(self, name: str) -> Any:
        """The request's result, or why it has none."""

        def done(index: int, result: GenerationResult) -> None:
            with self._all:
                self._found[name] = result
                self._all.notify_all()

        return done

    def wait(self, name: str) -> GenerationResult:
        with self._all:
            assert self._all.wait_for(lambda: name in self._found, PATIENCE_S)
            return self._found[name]


def test_requests_that_run_go_on_while_images_of_another_are_prepared(engine_of: Any) -> None:
    vllm, results = FakeVllm(num_steps=10**9), Results()
    engine = engine_of(vllm)
    engine.submit([request("runs", 1)], {}, results.of("runs")).result(PATIENCE_S)
    coming = engine.submit([request("comes", 2)], {}, results.of("comes"))
    assert vllm.preparing.wait(PATIENCE_S)
    while vllm.stepped.acquire(blocking=False):
        pass
    for _ in range(3):  # of the steps that follow while the prompt is not ready
        assert vllm.stepped.acquire(timeout=PATIENCE_S)
    assert vllm.added == ["runs"]
    vllm.may_prepare.set()
    coming.result(PATIENCE_S)
    assert vllm.added == ["runs", "comes"]
    engine.abort(["runs", "comes"]).result(PATIENCE_S)


def test_a_request_given_up_while_its_images_are_prepared_is_not_generated(engine_of: Any) -> None:
    vllm, results = FakeVllm(num_steps=10**9), Results()
    engine = engine_of(vllm)
    engine.submit([request("comes", 2)], {}, results.of("comes"))
    assert vllm.preparing.wait(PATIENCE_S)
    given_up = engine.abort(["comes"])
    vllm.may_prepare.set()
    given_up.result(PATIENCE_S)
    assert isinstance(results.wait("comes"), EngineError)
    assert vllm.aborted == ["comes"]


def test_a_prompt_that_cannot_be_prepared_fails_alone(engine_of: Any) -> None:
    vllm, results = FakeVllm(num_steps=2), Results()
    engine = engine_of(vllm)
    vllm.may_prepare.set()
    without_media = EngineRequest(
        "bad", "bad", np.arange(1), np.arange(1), ("lost",), Sampling(temperature=1.0, max_tokens=4, seed=0)
    )
    with pytest.raises(KeyError, match="lost"):
        engine.submit([without_media], {}, results.of("bad")).result(PATIENCE_S)
    engine.submit([request("good", 2)], {}, results.of("good")).result(PATIENCE_S)
    generation = results.wait("good")
    assert isinstance(generation, Generation)
    assert generation.token_ids.tolist() == [7]


def test_an_output_that_cannot_be_read_fails_its_request_alone(
    engine_of: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    vllm, results = FakeVllm(num_steps=2), Results()
    engine = engine_of(vllm)
    vllm.may_prepare.set()
    whole = vllm._output
    monkeypatch.setattr(vllm, "_output", lambda name: SimpleNamespace(finished=True, request_id=name))
    engine.submit([request("bad", 1)], {}, results.of("bad")).result(PATIENCE_S)
    assert isinstance(results.wait("bad"), AttributeError)
    monkeypatch.setattr(vllm, "_output", whole)
    engine.submit([request("good", 1)], {}, results.of("good")).result(PATIENCE_S)
    assert isinstance(results.wait("good"), Generation)
