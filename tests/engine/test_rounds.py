"""A round's first batch finds nothing in the engine's caches that another round has left (law 8)."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from builders import make_config

from vlrl.engine.engine import Engine
from vlrl.engine.requests import EngineRequest
from vlrl.types import Sampling

PATIENCE_S = 60


class Recorder:
    """vLLM's part: every request is done after one step; what was asked of it, in order."""

    def __init__(self) -> None:
        self.renderer, self.asked, self._open = self, list[str](), list[str]()

    def render_cmpl(self, prompts: list[dict[str, Any]], *, skip_mm_cache: bool) -> list[Any]:
        return [prompt["prompt_token_ids"] for prompt in prompts]

    def add_request(self, name: str, prompt: Any, params: Any, lora_request: Any) -> None:
        self.asked.append(name)
        self._open.append(name)

    def has_unfinished_requests(self) -> bool:
        return bool(self._open)

    def step(self) -> list[Any]:
        done, self._open = self._open, []
        return [self._output(name) for name in done]

    def reset_encoder_cache(self) -> None:
        self.asked.append("images")

    def reset_prefix_cache(self, reset_running_requests: bool) -> bool:
        self.asked.append("all prompts" if reset_running_requests else "prompts")
        return True

    def collective_rpc(self, method: str, args: Any) -> None:
        self.asked.append(method)

    def set_weight_version(self, version: str) -> None:
        self.asked.append(f"version {version}")

    def _output(self, name: str) -> Any:
        logprobs = SimpleNamespace(logprobs=[-1.0])
        completion = SimpleNamespace(
            token_ids=[7], logprobs=logprobs, weight_versions=[], finish_reason="stop", routed_experts=None
        )
        return SimpleNamespace(request_id=name, finished=True, prompt_token_ids=[0, 1], outputs=[completion])


def request(name: str, *, begins: bool) -> EngineRequest:
    ids, sampling = np.arange(2), Sampling(temperature=1.0, max_tokens=1, seed=0)
    return EngineRequest(name, name, ids, ids, (), sampling, begins=begins)


def started(monkeypatch: pytest.MonkeyPatch) -> tuple[Engine, Recorder]:
    """An engine of ours on the recorder, as it is after a start."""
    monkeypatch.setattr("vlrl.engine.engine.fetch_media", dict)
    monkeypatch.setattr("vlrl.engine.engine.sampling_params", lambda *_: None)
    engine, vllm = Engine(make_config(), [], [], {}), Recorder()
    engine.run(lambda: setattr(engine, "_engine", vllm)).result(PATIENCE_S)
    return engine, vllm


def generate(engine: Engine, batch: dict[str, bool]) -> None:
    """Have a batch generated: names of requests, and whether each begins an episode."""
    requests = [request(name, begins=begins) for name, begins in batch.items()]
    assert len(engine.run(lambda: engine.generate_batch(requests, {})).result(PATIENCE_S)) == len(batch)


def test_caches_are_emptied_when_all_of_a_batch_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    """An episode that goes on keeps its prompt's blocks, and so do those that begin beside it."""
    engine, vllm = started(monkeypatch)
    for batch in ({"a": True, "b": True}, {"c": False, "d": True}, {"e": True}):
        generate(engine, batch)
    assert vllm.asked == ["a", "b", "c", "d", "prompts", "images", "e"]


def test_an_update_empties_them_before_it_and_for_the_batch_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    engine, vllm = started(monkeypatch)
    generate(engine, {"a": True})
    engine.run(lambda: engine.update(None, 1)).result(PATIENCE_S)  # type: ignore[arg-type]
    generate(engine, {"b": True})
    generate(engine, {"c": True})
    emptied = ["all prompts", "images", "receive_weights", "version 1"]
    assert vllm.asked == ["a", *emptied, "b", "prompts", "images", "c"]


def test_an_update_beside_running_requests_leaves_what_these_compute_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """So a batch that begins when they are done finds nothing of them either."""
    engine, vllm = started(monkeypatch)
    done: dict[int, Any] = {}

    def update_and_go_on() -> None:
        engine.admit([request("a", begins=True)], [[0, 1]], done.__setitem__)
        engine.update(None, 1)  # type: ignore[arg-type]

    engine.run(update_and_go_on).result(PATIENCE_S)
    while not done:
        engine.run(lambda: None).result(PATIENCE_S)
    generate(engine, {"b": True})
    assert vllm.asked[-3:] == ["prompts", "images", "b"]
