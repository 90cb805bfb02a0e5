"""One chat completion from an OpenAI-compatible server, tried again while that makes sense."""

from __future__ import annotations

import asyncio
import email.utils
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import httpx2

from vlrl.errors import ConfigError, VlrlError
from vlrl.rewards.judge.endpoint import JudgeEndpoint
from vlrl.rewards.judge.stats import judge_stats
from vlrl.seeds import derive_seed

MAX_WAIT_S = 60.0
"""Longest wait before a retry, whatever the server asks for."""

_TRANSIENT = frozenset({408, 409, 425, 429})
_NO_SUCH_FORMAT = frozenset({400, 422})


class JudgeFailure(VlrlError):
    """No verdict, for a reason that is not the completion's: a failure of the reward (law 7), not a score."""


@dataclass(frozen=True, slots=True)
class _Failure:
    """Why a try gave no reply, and how long the server asks to wait."""

    reason: str
    retry_after_s: float = 0.0


class Chat:
    """Requests to one endpoint, over a client that belongs to the running event loop."""

    def __init__(self, endpoint: JudgeEndpoint, client: httpx2.AsyncClient) -> None:
        """Take the key from the environment.

        Raises:
            ConfigError: if the variable is not set.
        """
        self._endpoint, self._client = endpoint, client
        self._takes_schema = True
        self._key = ""
        if endpoint.api_key_env is not None:
            self._key = os.environ.get(endpoint.api_key_env, "")
            if not self._key:
                raise ConfigError(
                    f"endpoint.api_key_env={endpoint.api_key_env!r}: the environment has no such variable; "
                    f"export it, or leave api_key_env out for a server without keys"
                )

    async def complete(
        self, messages: Sequence[Mapping[str, Any]], schema: Mapping[str, Any], seed: str
    ) -> str:
        """The assistant's text; "" for a refusal.

        Args:
            messages: in OpenAI's form.
            schema: JSON schema of the reply, sent if the server takes one.
            seed: what the jitter of the waits derives from.

        Raises:
            JudgeFailure: once the retries are spent, or at once for an error that a retry cannot fix.
        """
        endpoint, stats = self._endpoint, judge_stats(self._endpoint.model)
        with_schema, failure, attempt = self._takes_schema, _Failure(""), 0
        while attempt <= endpoint.max_retries:
            if attempt:
                stats.num_retries += 1
                await asyncio.sleep(max(retry_wait_s(endpoint, seed, attempt), failure.retry_after_s))
            response = await self._post(messages, schema if with_schema else None)
            if isinstance(response, _Failure):
                failure = response
            elif response.status_code == 200:
                reply = self._read(response)
                if isinstance(reply, str):
                    self._takes_schema = self._takes_schema and with_schema
                    return reply
                failure = reply
            elif response.status_code in _NO_SUCH_FORMAT and with_schema:
                with_schema = False  # not every server knows response_format: ask without
                continue
            else:
                failure = _Failure(self._status_text(response), _retry_after_s(response))
                if response.status_code not in _TRANSIENT and response.status_code < 500:
                    raise JudgeFailure(f"{self._name()}: {failure.reason}")
            attempt += 1
        raise JudgeFailure(
            f"{self._name()}: {attempt} tries failed, the last with: {failure.reason}; see that the server "
            "is up, or raise endpoint.max_retries or endpoint.timeout_s"
        )

    async def _post(
        self, messages: Sequence[Mapping[str, Any]], schema: Mapping[str, Any] | None
    ) -> httpx2.Response | _Failure:
        endpoint, stats = self._endpoint, judge_stats(self._endpoint.model)
        body: dict[str, Any] = {
            "model": endpoint.model,
            "messages": list(messages),
            "temperature": 0,
            "max_tokens": endpoint.max_tokens,
        }
        if schema is not None:
            form = {"name": "verdict", "strict": True, "schema": schema}
            body["response_format"] = {"type": "json_schema", "json_schema": form}
        body = {name: value for name, value in (body | endpoint.extra_body).items() if value is not None}
        headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
        stats.num_requests += 1
        begin = time.perf_counter()
        try:
            async with asyncio.timeout(endpoint.timeout_s):
                response = await self._client.post(endpoint.url, json=body, headers=headers)
        except TimeoutError:
            return _Failure(f"no whole answer within timeout_s={endpoint.timeout_s:g}")
        except httpx2.RequestError as error:  # refused, cut, or no HTTP
            return _Failure(f"{type(error).__name__}: {self._safe(str(error))}")
        stats.latencies_s.append(time.perf_counter() - begin)
        return response

    def _read(self, response: httpx2.Response) -> str | _Failure:
        """The text of a reply, its tokens counted; a body that is not a chat completion is a failure."""
        try:
            body = response.json()
            message = body["choices"][0]["message"]
            content = None if message.get("refusal") else message.get("content")
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            return _Failure(
                f"the body is not a chat completion ({type(error).__name__}): {self._start(response)}"
            )
        usage = body.get("usage")
        self._count(usage if isinstance(usage, dict) else {})
        return content if isinstance(content, str) else ""

    def _count(self, usage: Mapping[str, Any]) -> None:
        endpoint, stats = self._endpoint, judge_stats(self._endpoint.model)
        given = (usage.get("prompt_tokens"), usage.get("completion_tokens"))
        tokens_in, tokens_out = (n if isinstance(n, int) and n >= 0 else 0 for n in given)
        stats.tokens_in += tokens_in
        stats.tokens_out += tokens_out
        stats.cost += (tokens_in * endpoint.price_in + tokens_out * endpoint.price_out) / 1e6

    def _status_text(self, response: httpx2.Response) -> str:
        return f"HTTP {response.status_code}: {self._start(response)}"

    def _start(self, response: httpx2.Response) -> str:
        return self._safe(response.text[:2000])[:300]

    def _safe(self, text: str) -> str:
        """Servers repeat what they were sent; the key must not get into a log."""
        return text.replace(self._key, "***") if self._key else text

    def _name(self) -> str:
        return f"judge {self._endpoint.model!r} at {self._endpoint.base_url}"


def retry_wait_s(endpoint: JudgeEndpoint, seed: str, attempt: int) -> float:
    """Exponential, with a jitter that is the same in every run of the same question."""
    share = 0.5 + 0.5 * (derive_seed("judge", seed, attempt) % 2**32) / 2**32
    return min(endpoint.backoff_s * 2.0 ** min(attempt - 1, 32) * share, MAX_WAIT_S)


def _retry_after_s(response: httpx2.Response) -> float:
    """Seconds of a Retry-After header, given as a number or a date; 0 without one that can be read."""
    text = response.headers.get("retry-after", "")
    try:
        seconds = float(text)
    except ValueError:
        try:
            seconds = email.utils.parsedate_to_datetime(text).timestamp() - time.time()
        except (ValueError, TypeError):
            return 0.0
    return min(max(seconds, 0.0), MAX_WAIT_S) if seconds == seconds else 0.0
