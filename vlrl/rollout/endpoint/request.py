"""A chat completion request: what it asks for, and which fields it may have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from vlrl.rollout.endpoint.messages import Message, read_messages
from vlrl.rollout.endpoint.refusal import Refused

_READ = frozenset(
    {"model", "messages", "tools", "tool_choice", "max_tokens", "max_completion_tokens", "stream"}
    | {"stream_options"}
)
_IGNORED = frozenset(
    {"temperature", "top_p", "seed", "user", "metadata", "store", "service_tier"}
    | {"safety_identifier", "prompt_cache_key", "prompt_cache_retention"}
)
"""The first three are the run's to choose: it trains the distribution that it samples from."""

_ONE_ACTION = "one action is generated a request; send the request again for another"
_OWN_DISTRIBUTION = "the trained distribution is the model's own; leave it out"
_NEUTRAL: Mapping[str, tuple[tuple[Any, ...], str]] = {
    "n": ((1,), _ONE_ACTION),
    "best_of": ((1,), _ONE_ACTION),
    "logprobs": ((False,), "they are kept for training and not given out; leave it out"),
    "top_logprobs": ((0,), "they are kept for training and not given out; leave it out"),
    "stop": (([],), "an action ends where the model ends it; cut the text yourself"),
    "presence_penalty": ((0,), _OWN_DISTRIBUTION),
    "frequency_penalty": ((0,), _OWN_DISTRIBUTION),
    "logit_bias": (({},), _OWN_DISTRIBUTION),
    "response_format": (({"type": "text"},), "nothing constrains what is generated; read the text yourself"),
    "parallel_tool_calls": ((True,), "nothing constrains what is generated; use the first call"),
    "modalities": ((["text"],), "the model writes text"),
}
"""Fields that would change what is generated: the values that do not, and what is said of all others."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A request that can be answered.

    Attributes:
        messages: the whole conversation.
        tools: JSON schemas as a chat template takes them.
        max_tokens: the client's limit, or None.
        stream: the reply is to be sent as events.
        include_usage: the last event holds the token counts.
        ignored: fields that were given and have no effect.
    """

    messages: tuple[Message, ...]
    tools: tuple[Mapping[str, Any], ...] = ()
    max_tokens: int | None = None
    stream: bool = False
    include_usage: bool = False
    ignored: tuple[str, ...] = ()


def read_request(body: Any) -> Asked:
    """Read a request's JSON.

    Raises:
        Refused: for anything that is not served, naming the field.
    """
    if not isinstance(body, dict):
        raise Refused("the request's body must be a JSON object")
    given = {name: value for name, value in body.items() if value is not None}
    _refuse_strangers(given)
    stream = given.get("stream", False)
    options = given.get("stream_options", {})
    if not isinstance(stream, bool) or not isinstance(options, dict) or set(options) - {"include_usage"}:
        raise Refused("stream must be a boolean and stream_options {'include_usage': …}", field="stream")
    return Asked(
        messages=read_messages(given.get("messages")),
        tools=_tools(given),
        max_tokens=_max_tokens(given),
        stream=stream,
        include_usage=bool(options.get("include_usage", False)),
        ignored=tuple(sorted(_IGNORED & set(given))),
    )


def _refuse_strangers(given: Mapping[str, Any]) -> None:
    """Refuse unknown fields: nothing may be generated otherwise than the client believes."""
    for name, value in given.items():
        if name in _NEUTRAL:
            neutral, why = _NEUTRAL[name]
            if value not in neutral:
                raise Refused(f"{name}={value!r:.80} is not supported: {why}", code="unsupported", field=name)
        elif name not in _READ | _IGNORED:
            raise Refused(f"the field {name!r:.80} is not known here", code="unknown_parameter", field=name)


def _max_tokens(given: Mapping[str, Any]) -> int | None:
    limits = []
    for name in ("max_tokens", "max_completion_tokens"):
        if name in given:
            value = given[name]
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise Refused(f"{name}={value!r:.80} must be a whole number above 0", field=name)
            limits.append(value)
    return min(limits, default=None)


def _tools(given: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    tools, choice = given.get("tools", []), given.get("tool_choice", "auto")
    if choice not in ("auto", "none"):
        raise Refused(
            f"tool_choice={choice!r:.80} is not supported: nothing constrains the text; say auto or none",
            code="unsupported",
            field="tool_choice",
        )
    if not isinstance(tools, list):
        raise Refused("tools must be a list", field="tools")
    for tool in tools:
        function = tool.get("function") if isinstance(tool, dict) and tool.get("type") == "function" else None
        if not isinstance(function, dict) or not isinstance(function.get("name"), str):
            raise Refused(
                "a tool is {'type': 'function', 'function': {'name': …, 'parameters': …}}", field="tools"
            )
    return () if choice == "none" else tuple(tools)
