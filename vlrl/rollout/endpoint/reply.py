"""What was generated, in OpenAI's chat completion format: as one object, or as the events of a stream."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from vlrl.parsing.tool_calls import ParsedCall, parse_calls
from vlrl.rollout.endpoint.messages import ToolCall

FinishReason = Literal["stop", "length", "tool_calls"]


@dataclass(frozen=True, slots=True)
class Reply:
    """An answered request.

    Attributes:
        number: of the request in its episode.
        content: what the model wrote, without its well-formed tool calls.
        calls: these.
        finish_reason: "length" if it was cut.
        num_prompt_tokens: of the ledger before the action, media expanded.
        num_action_tokens: generated, the one that ends the turn included.
    """

    number: int
    content: str
    calls: tuple[ToolCall, ...]
    finish_reason: FinishReason
    num_prompt_tokens: int
    num_action_tokens: int

    @property
    def message(self) -> dict[str, Any]:
        """The assistant's message."""
        content = self.content if self.content or not self.calls else None
        message: dict[str, Any] = {"role": "assistant", "content": content, "refusal": None}
        return {**message, "tool_calls": [_call(call) for call in self.calls]} if self.calls else message

    @property
    def usage(self) -> dict[str, int]:
        """The ledger's counts."""
        total = self.num_prompt_tokens + self.num_action_tokens
        counts = {"prompt_tokens": self.num_prompt_tokens, "completion_tokens": self.num_action_tokens}
        return {**counts, "total_tokens": total}


def split_calls(text: str, number: int) -> tuple[str, tuple[ToolCall, ...]]:
    """(what is left of a text, its well-formed tool calls); a call's id is made of the request's number."""
    calls = [call for call in parse_calls(text) if isinstance(call, ParsedCall)]
    left, cursor = "", 0
    for call in calls:
        left += text[cursor : call.span[0]]
        cursor = call.span[1]
    left += text[cursor:]
    found = tuple(
        ToolCall(f"call_{number}_{index}", call.name, json.dumps(call.arguments, ensure_ascii=False))
        for index, call in enumerate(calls)
    )
    return left.strip() if found else left, found


def completion(reply: Reply, model: str, created: int) -> dict[str, Any]:
    """The reply as one object; created in seconds since 1970."""
    choice = {"index": 0, "message": reply.message, "logprobs": None, "finish_reason": reply.finish_reason}
    head = _head(reply, model, created, "chat.completion")
    return {**head, "choices": [choice], "usage": reply.usage}


def events(reply: Reply, model: str, created: int, *, include_usage: bool) -> Iterator[str]:
    """The reply as server-sent events: who speaks, the content, the calls, the end, and the counts."""
    head = _head(reply, model, created, "chat.completion.chunk")
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{"content": reply.content}] if reply.content else []
    deltas += [{"tool_calls": [{"index": i, **_call(call)}]} for i, call in enumerate(reply.calls)]
    ends = [None] * len(deltas) + [reply.finish_reason]
    for delta, end in zip([*deltas, {}], ends, strict=True):
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": end}
        yield _event({**head, "choices": [choice]} | ({"usage": None} if include_usage else {}))
    if include_usage:
        yield _event({**head, "choices": [], "usage": reply.usage})
    yield "data: [DONE]\n\n"


def _head(reply: Reply, model: str, created: int, kind: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{reply.number}", "object": kind, "created": created, "model": model}


def _call(call: ToolCall) -> dict[str, Any]:
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": call.id, "type": "function", "function": function}


def _event(value: Mapping[str, Any]) -> str:
    return f"data: {json.dumps(value)}\n\n"
