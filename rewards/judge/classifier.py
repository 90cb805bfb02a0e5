"""A reward model that classifies, on an engine of its own: vLLM's pooling runner behind /classify."""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
import os
from collections.abc import Mapping, Sequence
from typing import Any

import httpx2

from vlrl.chat_client.client import retry_wait_s
from vlrl.errors import ConfigError
from vlrl.parsing.extract import Part, scored_text
from vlrl.rewards.judge.endpoint import JudgeEndpoint, JudgeFailure, parse_endpoint
from vlrl.rewards.judge.images import DataUrls
from vlrl.rewards.judge.prompt import conversation_text, harmless
from vlrl.scoring.author import reward
from vlrl.scoring.per_loop import PerLoop
from vlrl.types import Media

_TRANSIENT = frozenset({408, 409, 425, 429})


@reward(range=(0.0, 1.0))
async def classifier(
    completion: str,
    answer: Any,
    *,
    endpoint: Mapping[str, Any],
    label: int | str = -1,
    verbatim: bool = False,
    part: Part = "whole",
    prompt: Sequence[Mapping[str, Any]] = (),
    media: Sequence[Media] = (),
) -> float:
    """The probability of one class that a classifier gives to the conversation with this completion.

    Range [0, 1]. Source: reward models as classifiers of a conversation (Christiano et al. 2017, arXiv
    1706.03741; Ouyang et al. 2022, arXiv 2203.02155). The server is vLLM with a sequence classification model
    (`vllm serve MODEL --runner pooling`), which is given messages at BASE_URL without /v1, at /classify, and
    answers `probs`. A model of one class answers its sigmoid: label 0 or -1.

    A reward model can be talked to like a judge: what looks like a control token in the completion is broken
    up, the rest is persuasion. Put it behind a verifiable reward. Empty text, text out of form and more than
    20,000 characters score 0 and are not sent. An endpoint that fails through its retries, or answers no
    probabilities, is a failure of the sample, never a score.

    Args:
        completion: what the model wrote.
        answer: not looked at.
        endpoint: as for `judge`; what is about verdicts, prices and caches has no effect.
        label: the class: its number (negative from the end) or its name in the model's config.
        verbatim: show the row's own messages, each image in its place, as `vlrl reward-model` trains on them;
            false shows one question, its images named and before it.
        part: "answer" or "whole".
        prompt: the question.
        media: its images and frames.

    Raises:
        ConfigError: for a wrong endpoint, or a key that is not in the environment.
        JudgeFailure: if there is no answer, or one without that class.
    """
    where = parse_endpoint(endpoint)
    said = scored_text(completion, part)
    if said is None:
        return 0.0
    server = await _server(where)
    shown = await server.urls.parts(tuple(media)) if where.images and media else []
    asked = _in_place(prompt, shown) if verbatim else [_question(prompt, shown)]
    body = {
        "model": where.model,
        "messages": [*asked, {"role": "assistant", "content": harmless(said)}],
        "add_generation_prompt": False,
        **where.extra_body,
    }
    return probability(await server.ask(body), label, where.model)


def _question(prompt: Sequence[Mapping[str, Any]], shown: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The conversation as one message, after its media."""
    question = conversation_text(prompt)
    return {
        "role": "user",
        "content": [*shown, {"type": "text", "text": question}] if shown else question,
    }


def _in_place(
    prompt: Sequence[Mapping[str, Any]], shown: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """The conversation's own messages, its images where they are.

    Raises:
        ConfigError: for a video, whose frames would be images in its place.
    """
    urls = iter([part for part in shown if part["type"] == "image_url"])
    messages = []
    for message in prompt:
        content = message["content"]
        if not isinstance(content, str):
            if any(part["type"] == "video" for part in content):
                raise ConfigError("verbatim=true shows images, and the row has a video; set verbatim=false")
            content = [dict(part) if part["type"] == "text" else next(urls, None) for part in content]
            content = [part for part in content if part is not None]  # None with endpoint.images=false
        messages.append({**message, "content": content})
    return messages


def probability(reply: Any, label: int | str, model: str) -> float:
    """The probability of a class in what /classify answered.

    Raises:
        JudgeFailure: if there is none from 0 to 1.
    """
    try:
        (item,) = reply["data"]
        probs = item["probs"]
        value = probs[label] if isinstance(label, int) else _named(item, probs, label)
    except (LookupError, TypeError, ValueError) as error:
        raise JudgeFailure(f"classifier {model!r}: no class {label!r} in {str(reply)[:200]}") from error
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not math.isfinite(value) or not -1e-6 <= value <= 1 + 1e-6:
        raise JudgeFailure(
            f"classifier {model!r}: {str(value)[:40]} is not a probability; has it an activation?"
        )
    return min(1.0, max(0.0, float(value)))


def _named(item: Mapping[str, Any], probs: Sequence[float], label: str) -> float:
    """Probability by name: the server names only the likeliest class, so another is known only of two."""
    if item["label"] == label:
        return max(probs)
    if len(probs) == 2:
        return min(probs)
    raise LookupError(f"the server named {item['label']!r} of {len(probs)} classes: give label by number")


class _Server:
    """One endpoint on one event loop."""

    def __init__(self, endpoint: JudgeEndpoint, client: httpx2.AsyncClient) -> None:
        self._endpoint, self._client = endpoint, client
        self._turns = asyncio.Semaphore(endpoint.max_concurrency)
        self.urls = DataUrls(endpoint)
        self._headers = {}
        if endpoint.api_key_env is not None:
            if not (key := os.environ.get(endpoint.api_key_env, "")):
                raise ConfigError(f"endpoint.api_key_env={endpoint.api_key_env!r}: there is no such variable")
            self._headers = {"Authorization": f"Bearer {key}"}

    async def ask(self, body: Mapping[str, Any]) -> Any:
        endpoint = self._endpoint
        seed = hashlib.sha256(json.dumps(body, sort_keys=True, default=str).encode()).hexdigest()
        trouble = ""
        async with self._turns:
            for attempt in range(endpoint.max_retries + 1):
                if attempt:
                    await asyncio.sleep(retry_wait_s(endpoint, seed, attempt))
                try:
                    async with asyncio.timeout(endpoint.timeout_s):
                        url = endpoint.base_url.removesuffix("/v1") + "/classify"
                        response = await self._client.post(url, json=body, headers=self._headers)
                    if response.status_code == 200:
                        return response.json()
                except TimeoutError:
                    trouble = f"no whole answer within timeout_s={endpoint.timeout_s:g}"
                except (httpx2.RequestError, ValueError, RecursionError) as error:  # refused, cut, no JSON
                    trouble = type(error).__name__
                else:
                    trouble = f"HTTP {response.status_code}"
                    if response.status_code not in _TRANSIENT and response.status_code < 500:
                        break
        raise JudgeFailure(f"classifier {endpoint.model!r} at {endpoint.base_url}: {trouble}")


class _Servers:
    """What belongs to one event loop: one HTTP client, and the servers that it asks."""

    def __init__(self) -> None:
        no_limits = httpx2.Limits(max_connections=None, max_keepalive_connections=64)
        self.client = httpx2.AsyncClient(timeout=None, limits=no_limits)
        self.by_endpoint: dict[str, _Server] = {}


_SERVERS = PerLoop(_Servers, lambda made: made.client.aclose())


async def _server(endpoint: JudgeEndpoint) -> _Server:
    made = await _SERVERS.get()
    name = endpoint.model_dump_json()
    if name not in made.by_endpoint:
        made.by_endpoint[name] = _Server(endpoint, made.client)
    return made.by_endpoint[name]
