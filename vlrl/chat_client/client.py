"""One chat completion from an OpenAI-compatible server, tried again while that makes sense."""

from __future__ import annotations

import asyncio
import email.utils
import os
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx2

from vlrl.config.chat import ChatEndpoint
from vlrl.errors import ConfigError, VlrlError
from vlrl.seeds import derive_seed

MAX_LATENCIES = 10_000
"""Latest answers that percentiles are taken over, if nobody takes the numbers for long."""

MAX_WAIT_S = 60.0
"""Longest wait before a retry, whatever the server asks for."""

_TRANSIENT = frozenset({408, 409, 425, 429})
_NO_SUCH_FORMAT = frozenset({400, 422})
_FILTERED = frozenset({"content_filter", "content_policy_violation"})
"""Codes of errors by which Azure's and OpenAI's filters refuse a question, for good."""


class ChatFailure(VlrlError):
    """A server gave no reply, for a reason that is not the question's."""


@dataclass(slots=True)
class RequestStats:
    """What was sent, and how long it took.

    Attributes:
        num_requests: HTTP requests sent.
        num_retries: of them, those sent since the one before failed.
        latencies_s: seconds from request to whole answer of the requests that were answered.
    """

    num_requests: int = 0
    num_retries: int = 0
    latencies_s: deque[float] = field(default_factory=lambda: deque(maxlen=MAX_LATENCIES))


@dataclass(frozen=True, slots=True)
class ChatReply:
    """A chat completion.

    Attributes:
        text: the assistant's; "" for a refusal, the model's own or that of the server's content filter.
        is_finished: the model ended it, not the limit of tokens.
        tokens_in: of the prompt, as the server counts them.
        tokens_out: of the completion.
    """

    text: str
    is_finished: bool
    tokens_in: int
    tokens_out: int


@dataclass(frozen=True, slots=True)
class _Failure:
    """Why a try gave no reply, and how long the server asks to wait."""

    reason: str
    retry_after_s: float = 0.0


class Chat:
    """Requests to one endpoint, over a client that belongs to the running event loop."""

    def __init__(
        self,
        endpoint: ChatEndpoint,
        client: httpx2.AsyncClient,
        *,
        role: str,
        option: str,
        stats: RequestStats,
        failure: type[ChatFailure],
    ) -> None:
        """Take the key from the environment.

        Args:
            endpoint: where the server is.
            client: sends the requests.
            role: of the model there, for messages: "judge".
            option: the key of the endpoint's options.
            stats: counts what is sent.
            failure: what is raised where there is no reply.

        Raises:
            ConfigError: if the variable is not set.
        """
        self._endpoint, self._client = endpoint, client
        self._role, self._option, self._stats, self._failure = role, option, stats, failure
        self._takes_schema = True
        self._key = ""
        if endpoint.api_key_env is not None:
            self._key = os.environ.get(endpoint.api_key_env, "")
            if not self._key:
                raise ConfigError(
                    f"{option}.api_key_env={endpoint.api_key_env!r}: the environment has no such variable; "
                    f"export it, or leave api_key_env out for a server without keys"
                )

    async def complete(
        self,
        messages: Sequence[Mapping[str, Any]],
        fields: Mapping[str, Any],
        seed: str,
        schema: Mapping[str, Any] | None = None,
    ) -> ChatReply:
        """The assistant's reply.

        Args:
            messages: in OpenAI's form.
            fields: of the request, such as temperature; the endpoint's extra_body goes over them.
            seed: what the jitter of the waits derives from.
            schema: JSON schema of the reply, sent if the server takes one.

        Raises:
            ChatFailure: the given kind of it, once the retries are spent, or at once for an error that a
                retry cannot fix.
        """
        endpoint = self._endpoint
        with_schema, failure, attempt = schema is not None and self._takes_schema, _Failure(""), 0
        while attempt <= endpoint.max_retries:
            if attempt:
                self._stats.num_retries += 1
                await asyncio.sleep(max(retry_wait_s(endpoint, seed, attempt), failure.retry_after_s))
            response = await self._post(messages, fields, schema if with_schema else None)
            if isinstance(response, _Failure):
                failure = response
            elif response.status_code == 200:
                reply = self._read(response)
                if isinstance(reply, ChatReply):
                    self._takes_schema = self._takes_schema and (with_schema or schema is None)
                    return reply
                failure = reply
            elif response.status_code == 400 and _is_filtered(response):
                return ChatReply("", is_finished=True, tokens_in=0, tokens_out=0)
            elif response.status_code in _NO_SUCH_FORMAT and with_schema:
                with_schema = False  # not every server knows response_format: ask without
                continue
            else:
                failure = _Failure(self._status_text(response), _retry_after_s(response))
                if response.status_code not in _TRANSIENT and response.status_code < 500:
                    raise self._failure(f"{self._name()}: {failure.reason}")
            attempt += 1
        raise self._failure(
            f"{self._name()}: {attempt} tries failed, the last with: {failure.reason}; see that the server "
            f"is up, or raise {self._option}.max_retries or {self._option}.timeout_s"
        )

    async def _post(
        self,
        messages: Sequence[Mapping[str, Any]],
        fields: Mapping[str, Any],
        schema: Mapping[str, Any] | None,
    ) -> httpx2.Response | _Failure:
        endpoint, stats = self._endpoint, self._stats
        body: dict[str, Any] = {"model": endpoint.model, "messages": list(messages), **fields}
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

    def _read(self, response: httpx2.Response) -> ChatReply | _Failure:
        """Read a reply; a body that is not a chat completion is a failure."""
        try:
            body = response.json()
            choice = body["choices"][0]
            message = choice["message"]
            content = None if message.get("refusal") else message.get("content")
            is_finished = choice.get("finish_reason") != "length"
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            return _Failure(
                f"the body is not a chat completion ({type(error).__name__}): {self._start(response)}"
            )
        usage = body.get("usage")
        given = usage if isinstance(usage, dict) else {}
        counts = (given.get("prompt_tokens"), given.get("completion_tokens"))
        tokens_in, tokens_out = (n if isinstance(n, int) and n >= 0 else 0 for n in counts)
        return ChatReply(content if isinstance(content, str) else "", is_finished, tokens_in, tokens_out)

    def _status_text(self, response: httpx2.Response) -> str:
        return f"HTTP {response.status_code}: {self._start(response)}"

    def _start(self, response: httpx2.Response) -> str:
        return self._safe(response.text[:2000])[:300]

    def _safe(self, text: str) -> str:
        """Servers repeat what they were sent; the key must not get into a log."""
        return text.replace(self._key, "***") if self._key else text

    def _name(self) -> str:
        return f"{self._role} {self._endpoint.model!r} at {self._endpoint.base_url}"


def _is_filtered(response: httpx2.Response) -> bool:
    try:
        return response.json()["error"]["code"] in _FILTERED
    except (ValueError, LookupError, TypeError, RecursionError):
        return False


def retry_wait_s(endpoint: ChatEndpoint, seed: str, attempt: int) -> float:
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
