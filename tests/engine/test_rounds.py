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

    def reset_prefix_cache(self) -> bool:
        self.asked.append("prompts")
        return True

    def _output(self, name: str) -> Any:
        logprobs = SimpleNamespace(logprobs=[-1.0])
        completion = SimpleNamespace(
            token_ids=[7], logprobs=logprobs, weight_versions=[], finish_reason="stop", routed_experts=None
        )
        return SimpleNamespace(request_id=name, finished=True, prompt_token_ids=[0, 1], outputs=[completion])


def request(name: str, *, begins: bool) -> EngineRequest:
    ids, sampling = np.arange(2), Sampling(temperature=1.0, max_tokens=1, seed=0)
    return EngineRequest(name, name, ids, ids, (), sampling, begins=begins)


def test_caches_are_emptied_when_all_of_a_batch_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    """An episode that goes on keeps its prompt's blocks, and so do those that begin beside it."""
    monkeypatch.setattr("vlrl.engine.engine.fetch_media", dict)
    monkeypatch.setattr("vlrl.engine.engine.sampling_params", lambda *_: None)
    engine, vllm = Engine(make_config(), [], [], {}), Recorder()
    engine.run(lambda: setattr(engine, "_engine", vllm)).result(PATIENCE_S)
    for batch in ({"a": True, "b": True}, {"c": False, "d": True}, {"e": True}):
        requests = [request(name, begins=begins) for name, begins in batch.items()]
        results = engine.run(lambda asked=requests: engine.generate_batch(asked, {})).result(PATIENCE_S)
        assert len(results) == len(batch)
    assert vllm.asked == ["images", "prompts", "a", "b", "c", "d", "images", "prompts", "e"]
