"""A verifiers harness that talks to the model in this process: messages, tools over MCP, no program started.

It takes the place of verifiers' own default (a shell for the model on this machine). As a plug-in its id is
vlrl_chat.
"""

from __future__ import annotations

import json
from contextlib import AsyncExitStack
from typing import Any

import httpx
import verifiers.v1 as vf
from openai import AsyncOpenAI
from verifiers.v1.dialects.chat import message_to_wire
from verifiers.v1.harnesses.utils.core import gate_tool_call
from verifiers.v1.harnesses.utils.mcp import call_mcp, connect_mcp

__all__ = ["ChatHarness", "ChatHarnessConfig"]


class ChatHarnessConfig(vf.HarnessConfig):  # type: ignore[misc]  # not installed beside vlrl
    """Nothing beside what every harness has."""

    id: str = "vlrl_chat"


class ChatHarness(vf.Harness[ChatHarnessConfig]):  # type: ignore[misc]
    """Asks, runs the tools that the answer calls, and asks again until an answer calls none."""

    APPENDS_SYSTEM_PROMPT = True
    SUPPORTS_MCP = True
    SUPPORTS_RESUME = True
    SUPPORTS_TOOL_INTERCEPTION = True
    EXECUTES_CODE = False
    NEEDS_CONTAINER = False

    async def launch(
        self,
        ctx: vf.ModelContext,
        trace: vf.Trace,
        runtime: vf.Runtime,
        endpoint: str,
        secret: str,
        mcp_urls: dict[str, str],
        data: vf.TaskData,
        tool_interception_url: str | None = None,
    ) -> vf.ProgramResult:
        """Play one segment of the conversation."""
        system, prompt = self.resolve_prompt(data)
        messages: list[dict[str, Any]] = [{"role": "system", "content": system}] if system else []
        if isinstance(prompt, str):
            messages.append({"role": "user", "content": prompt})
        else:
            messages += [message_to_wire(message) for message in prompt or []]
        servers = {name: {"url": url, "timeout": self.config.tool_timeout} for name, url in mcp_urls.items()}
        async with AsyncExitStack() as stack:
            tools, dispatch, opened = await connect_mcp({"mcpServers": servers}, stack)
            # The answer takes as long as the policy's step; what may hang has its deadline in vlrl.
            client: Any = await stack.enter_async_context(
                AsyncOpenAI(base_url=endpoint, api_key=secret, timeout=None, max_retries=0)
            )
            gate: Any = await stack.enter_async_context(httpx.AsyncClient(timeout=None, trust_env=False))
            while True:
                asked: dict[str, Any] = {"tools": tools} if tools else {}
                completion = await client.chat.completions.create(model=ctx.model, messages=messages, **asked)
                message = completion.choices[0].message
                messages.append(message.model_dump(exclude_none=True))
                for call in message.tool_calls or ():
                    url = tool_interception_url
                    decision = await gate_tool_call(gate, url, secret, call) if url else {"action": "allow"}
                    denied = decision["action"] == "deny"
                    result: Any = decision["message"] if denied else await _called(opened, dispatch, call)
                    messages.append(result)
                if not message.tool_calls:
                    return vf.ProgramResult(exit_code=0, stdout="", stderr="")


async def _called(servers: Any, dispatch: Any, call: Any) -> dict[str, Any]:
    """The message of a tool's result; vlrl has already read the arguments as a JSON object."""
    name = call.function.name
    if name in dispatch:
        content = await call_mcp(servers, dispatch, name, json.loads(call.function.arguments))
    else:
        content = f"error: unknown tool {name!r}; tools are {', '.join(dispatch) or 'none'}"
    return {"role": "tool", "tool_call_id": call.id, "name": name, "content": content}
