"""An episode's endpoint with a client at hand, and policies that say what a test wants."""

from __future__ import annotations

import base64
import io
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

from builders import (
    SAMPLING,
    ScriptedPolicy,
    TextProcessor,
    make_config,
    make_context,
    make_sample,
    random_image,
)
from openai import AsyncOpenAI
from PIL import Image

from vlrl.rollout.endpoint import EndpointRecord
from vlrl.rollout.session import Session
from vlrl.seeds import derive_seed
from vlrl.types import Ledger, Sampling

OWN_PACE = {"lockstep": False}
GUESS = {
    "type": "function",
    "function": {
        "name": "guess",
        "description": "Guess the number.",
        "parameters": {"type": "object", "properties": {"number": {"type": "integer"}}},
    },
}
CALL = '<tool_call>\n{"name": "guess", "arguments": {"number": 7}}\n</tool_call>'


@dataclass(frozen=True)
class Served:
    """An open episode."""

    client: AsyncOpenAI
    record: EndpointRecord
    policy: ScriptedPolicy
    context: Any
    base_url: str

    async def ask(self, messages: Sequence[Any], **options: Any) -> Any:
        """A completion."""
        return await self.client.chat.completions.create(model="any", messages=list(messages), **options)


@asynccontextmanager
async def served(
    answer: Callable[[Session, Sampling], Sequence[int]] | ScriptedPolicy,
    processor: Any = None,
    **sections: Any,
) -> AsyncIterator[Served]:
    """An episode's endpoint, open inside the block."""
    policy = answer if isinstance(answer, ScriptedPolicy) else ScriptedPolicy(answer)
    defaults = {
        "generator": {"max_model_len": 2048}, "rollout": {"max_tokens": 64}, "episodes": OWN_PACE
    }  # fmt: skip
    context = make_context(policy, processor or TextProcessor(), make_config(**{**defaults, **sections}))

    def sampling(turn: int | str) -> Sampling:
        return replace(SAMPLING, max_tokens=64, seed=derive_seed(turn))

    record = EndpointRecord(make_sample(), 0, sampling, context)
    try:
        async with (
            context.endpoint.serving(record) as base_url,
            AsyncOpenAI(base_url=base_url, api_key="none", max_retries=0) as client,
        ):
            yield Served(client, record, policy, context, base_url)
    finally:
        await context.endpoint.close()


def in_turn(*texts: str, processor: Any = None) -> ScriptedPolicy:
    """A policy that says these texts one after the other, and notes what it generated."""
    left = list(texts)

    def answer(session: Session, sampling: Sampling) -> list[int]:
        text = left.pop(0)
        return [ord(c) for c in text] if processor is None else processor.encode_target(text).tolist()

    return ScriptedPolicy(answer)


def user(text: str, *urls: str) -> dict[str, Any]:
    """A user's message, images first."""
    parts: list[dict[str, Any]] = [{"type": "image_url", "image_url": {"url": url}} for url in urls]
    return {"role": "user", "content": [*parts, {"type": "text", "text": text}]}


def result(call: Any, text: str) -> dict[str, Any]:
    """A tool's message."""
    return {"role": "tool", "tool_call_id": call.id, "content": text}


def data_url(seed: int = 0, height: int = 56, width: int = 84) -> str:
    """A random image."""
    out = io.BytesIO()
    Image.fromarray(random_image(height, width, seed)).save(out, "PNG")
    return "data:image/png;base64," + base64.b64encode(out.getvalue()).decode()


def spell(ledger: Ledger) -> str:
    """A ledger of TextProcessor's."""
    return "".join(chr(i) for i in ledger.token_ids)


def generated_in(ledgers: Sequence[Ledger]) -> list[list[int]]:
    """Every action's tokens."""
    return [ledger.token_ids[slice(*turn.action)].tolist() for ledger in ledgers for turn in ledger.turns]
