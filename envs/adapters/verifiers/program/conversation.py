"""One episode's conversation: verifiers' calls of its model as observations and actions in turn."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping
from typing import Any


class Conversation:
    """Holds each call of the model open until its answer is given.

    Attributes:
        problem: why the environment cannot be played as one conversation; "" if it can.
        session_id: verifiers' id of the trace that the calls belong to; "" before the first.
        tools: declared by the last call.
    """

    def __init__(self) -> None:
        self.problem, self.session_id = "", ""
        self.tools: list[Any] = []
        self._asked: asyncio.Queue[list[dict[str, Any]]] = asyncio.Queue()
        self._answer: asyncio.Future[dict[str, Any]] | None = None
        self._seen: list[dict[str, Any]] = []

    async def call(self, body: Mapping[str, Any], session_id: str) -> dict[str, Any]:
        """A call of the model, as an OpenAI chat completion.

        Raises:
            ValueError: if it does not continue the conversation.
        """
        messages = list(body["messages"])
        try:
            new = self._new(messages, session_id or self.session_id)
        except ValueError as error:
            self.problem = str(error)
            raise
        self.session_id, self._seen, self.tools = session_id, messages, list(body.get("tools") or ())
        self._answer = asyncio.get_running_loop().create_future()
        await self._asked.put(new)
        try:
            return _completion(body, await self._answer)
        finally:
            self._answer = None

    async def observation(self) -> list[dict[str, Any]]:
        """Wait for the next call; gives the messages that it adds."""
        return await self._asked.get()

    def act(self, message: dict[str, Any]) -> None:
        """Answer the call held open with {"content", "thinking", "tool_calls": [{"name", "arguments"}]}."""
        if self._answer is None or self._answer.done():
            raise ValueError("the environment does not wait for an action: reset it first")
        self._answer.set_result(message)

    def _new(self, messages: list[dict[str, Any]], session_id: str) -> list[dict[str, Any]]:
        if self._answer is not None or session_id != (self.session_id or session_id):
            raise ValueError(
                "several agents ask the model that is trained; give the others a model and a client of their "
                "own in args, such as {judge: {model: …, client: {base_url: …}}}"
            )
        length = len(self._seen)
        begins_alike = [_essence(m) for m in messages[:length]] == [_essence(m) for m in self._seen]
        if length and not (
            begins_alike and messages[length:][:1] and messages[length]["role"] == "assistant"
        ):
            raise ValueError(
                "the harness rewrites the conversation, which is then no longer one to append to"
            )
        return messages[length + 1 :] if length else messages


def _essence(message: Mapping[str, Any]) -> Any:
    """What of a message must stay the same; the model's own messages are what it said, in whatever form."""
    if message["role"] == "assistant":
        return "assistant"
    content = message.get("content")
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content or []
    return message["role"], json.dumps([part for part in parts if part.get("text") != ""], sort_keys=True)


def _completion(body: Mapping[str, Any], action: Mapping[str, Any]) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": action["content"]}
    if action["thinking"]:
        message["reasoning_content"] = action["thinking"]
    if action["tool_calls"]:
        message["tool_calls"] = [
            {
                "id": f"call_{len(body['messages'])}_{index}",
                "type": "function",
                "function": {"name": call["name"], "arguments": json.dumps(call["arguments"])},
            }
            for index, call in enumerate(action["tool_calls"])
        ]
    return {
        "id": "vlrl",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": body["model"],
        "choices": [
            {
                "index": 0,
                "message": message,
                "finish_reason": "tool_calls" if action["tool_calls"] else "stop",
            }
        ],
        "usage": {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0},
    }
