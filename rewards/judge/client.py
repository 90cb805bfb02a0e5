"""Asking a judge a question once: cache, concurrency, one re-ask, and a strict reading of the verdict."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import httpx2

from vlrl.chat_client.client import Chat
from vlrl.rewards.judge.cache import VerdictCache
from vlrl.rewards.judge.endpoint import JudgeEndpoint, JudgeFailure
from vlrl.rewards.judge.images import DataUrls
from vlrl.rewards.judge.single_flight import SingleFlight
from vlrl.rewards.judge.stats import judge_stats
from vlrl.scoring.per_loop import PerLoop
from vlrl.types import Media

T = TypeVar("T")

CACHE_VERSION = 1
"""Counts up whenever the same question is put in other words."""

REMINDER = (
    "\n\nAn earlier reply to this was not the JSON object asked for. Reply with that object, its values in "
    "the allowed range, and nothing else."
)

_THOUGHT = re.compile(r"(?:<(?:think|thinking)>)?(?:(?!</?think(?:ing)?>).)*</think(?:ing)?>", re.DOTALL)
_FENCE = re.compile(r"```(?:json)?\n(.*)\n```", re.DOTALL)


class UnreadableVerdict(ValueError):
    """A reply that is not a verdict."""


@dataclass(frozen=True, slots=True)
class JudgeQuestion:
    """All that a verdict depends on, beside the model.

    Attributes:
        system: the judge's instructions.
        text: the rubric and the texts to judge.
        media: shown before the text.
        schema: JSON schema of the verdict.
    """

    system: str
    text: str
    media: tuple[Media, ...]
    schema: Mapping[str, Any]

    def key(self, endpoint: JudgeEndpoint) -> str:
        """Hash of the question to this model; media count by their pixels' hash and how they are shown."""
        shown = [endpoint.image_format, endpoint.max_image_pixels, endpoint.max_frames]
        asked: list[Any] = [CACHE_VERSION, endpoint.model, endpoint.max_tokens, endpoint.extra_body]
        asked += [self.system, self.text, self.schema]
        asked += [[medium.sha256 for medium in self.media], shown if self.media else []]
        return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()


async def ask(endpoint: JudgeEndpoint, question: JudgeQuestion, read: Callable[[Mapping[str, Any]], T]) -> T:
    """The value of the judge's verdict.

    Args:
        endpoint: who is asked.
        question: what.
        read: verdict → value; raises UnreadableVerdict.

    Raises:
        JudgeFailure: if the endpoint fails, or gives no readable verdict twice.
        ConfigError: if the endpoint's key is not in the environment.
    """
    judge = await _judge(endpoint)
    return await judge.ask(question, read)


def parse_verdict(text: str) -> dict[str, Any]:
    """The reply as a JSON object: the whole of it, or the whole of one fence. Nothing is searched for.

    A server without a parser for thoughts sends them inline, before the object: one <think> part, whose
    opening tag may have been in the judge's prompt, is left out. Two of them are refused: a thought that
    quotes the end of a thought must not decide what follows it.

    Raises:
        UnreadableVerdict: for anything else, a repeated key among it.
    """
    text = text.strip()
    if not text.startswith("{") and (thought := _THOUGHT.match(text)):  # an object may speak of tags
        text = text[thought.end() :].strip()
    fence = _FENCE.fullmatch(text)
    try:
        found = json.loads(fence[1] if fence else text, object_pairs_hook=_once, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise UnreadableVerdict(f"no JSON object: {error}") from error
    if not isinstance(found, dict):
        raise UnreadableVerdict("no JSON object")
    return found


class _Judge:
    """One endpoint on one event loop."""

    def __init__(self, endpoint: JudgeEndpoint, client: httpx2.AsyncClient) -> None:
        self._endpoint = endpoint
        self._chat = Chat(
            endpoint,
            client,
            role="judge",
            option="endpoint",
            stats=judge_stats(endpoint.model),
            failure=JudgeFailure,
        )
        self._urls = DataUrls(endpoint)
        self._cache = VerdictCache(endpoint.cache_dir) if endpoint.cache_dir is not None else None
        self._turns = asyncio.Semaphore(endpoint.max_concurrency)
        self._running: SingleFlight[Any] = SingleFlight()

    async def ask(self, question: JudgeQuestion, read: Callable[[Mapping[str, Any]], T]) -> T:
        stats = judge_stats(self._endpoint.model)
        key = question.key(self._endpoint)
        stats.num_calls += 1
        stats.num_cached += key in self._running
        try:
            found: T = await self._running.join(key, lambda: self._answer(key, question, read))
            return found
        except JudgeFailure:
            stats.num_failures += 1
            raise

    async def _answer(self, key: str, question: JudgeQuestion, read: Callable[[Mapping[str, Any]], T]) -> T:
        if (kept := await self._kept(key, read)) is not None:
            judge_stats(self._endpoint.model).num_cached += 1
            return kept
        async with self._turns:
            verdict, value = await self._verdict(key, question, read)
        if self._cache is not None:
            try:
                await asyncio.to_thread(self._cache.put, key, verdict, self._endpoint.model)
            except OSError:  # a verdict that was paid for counts, whatever the disk says; the metric tells
                judge_stats(self._endpoint.model).num_cache_errors += 1
        return value

    async def _kept(self, key: str, read: Callable[[Mapping[str, Any]], T]) -> T | None:
        verdict = await asyncio.to_thread(self._cache.get, key) if self._cache else None
        try:
            return None if verdict is None else read(verdict)
        except UnreadableVerdict:  # a broken entry is asked for again and overwritten
            return None

    async def _verdict(
        self, key: str, question: JudgeQuestion, read: Callable[[Mapping[str, Any]], T]
    ) -> tuple[Mapping[str, Any], T]:
        """The judge's verdict and its value; a reply that is none is asked for once more."""
        shown = await self._urls.parts(question.media)
        problem = ""
        for reminder in ("", REMINDER):
            if reminder:
                judge_stats(self._endpoint.model).num_reasks += 1
            text = question.text + reminder
            content: Any = [*shown, {"type": "text", "text": text}] if shown else text
            messages = [
                {"role": "system", "content": question.system},
                {"role": "user", "content": content},
            ]
            reply = await self._complete(messages, question, key + reminder)
            try:
                verdict = parse_verdict(reply)
                return verdict, read(verdict)
            except UnreadableVerdict as error:
                problem = f"{error}; it replied {reply[:200]!r}" if reply else "it refused, or said nothing"
        raise JudgeFailure(
            f"judge {self._endpoint.model!r} gave no verdict when asked twice: {problem}; if the reply was "
            f"cut, raise endpoint.max_tokens={self._endpoint.max_tokens}"
        )

    async def _complete(
        self, messages: Sequence[Mapping[str, Any]], question: JudgeQuestion, seed: str
    ) -> str:
        endpoint, stats = self._endpoint, judge_stats(self._endpoint.model)
        fields = {"temperature": 0, "max_tokens": endpoint.max_tokens}
        reply = await self._chat.complete(messages, fields, seed, question.schema)
        stats.tokens_in += reply.tokens_in
        stats.tokens_out += reply.tokens_out
        stats.cost += (reply.tokens_in * endpoint.price_in + reply.tokens_out * endpoint.price_out) / 1e6
        return reply.text


class _Judges:
    """HTTP client of one event loop, and the judges that use it."""

    def __init__(self) -> None:
        no_limits = httpx2.Limits(max_connections=None, max_keepalive_connections=64)  # the judges' own hold
        self.client = httpx2.AsyncClient(timeout=None, limits=no_limits)
        self.judges: dict[str, _Judge] = {}


_JUDGES = PerLoop(_Judges, lambda made: made.client.aclose())


async def _judge(endpoint: JudgeEndpoint) -> _Judge:
    made, name = await _JUDGES.get(), endpoint.model_dump_json()
    if name not in made.judges:
        made.judges[name] = _Judge(endpoint, made.client)
    return made.judges[name]


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise UnreadableVerdict("a key comes twice")
    return found


def _no_constant(name: str) -> Any:
    raise UnreadableVerdict(f"{name} is not a number")
