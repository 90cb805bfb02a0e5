"""The system message of Qwen's agents: the schema of one function in <tools>, calls in <tool_call> tags.

The form is Hermes', as Qwen's chat template and cookbooks write it; the sentences are ours.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal

Version = Literal["2.5", "3"]


def qwen_prompt(version: Version, name: str, description: str, parameters: Mapping[str, Any]) -> str:
    """What tells a Qwen model of its one function.

    Args:
        version: 2.5's schemas have two members more, which its agent framework writes.
        name: of the function.
        description: of it.
        parameters: their JSON schema.
    """
    function: dict[str, Any] = {"name": name, "description": description, "parameters": parameters}
    if version == "2.5":
        arguments = {"args_format": "The arguments are a JSON object."}
        function = {"name_for_human": name, **function, **arguments}
    schema = json.dumps({"type": "function", "function": function}, ensure_ascii=False)
    greeting = "You are a helpful assistant.\n\n" if version == "2.5" else ""
    return (
        f"{greeting}# Tools\n\n"
        "You act by calling a function. Its signature is within <tools></tools> XML tags:\n"
        f"<tools>\n{schema}\n</tools>\n\n"
        "Call it once in each message: a JSON object with the function's name and its arguments, within "
        "<tool_call></tool_call> XML tags:\n"
        '<tool_call>\n{"name": <function-name>, "arguments": <args-json-object>}\n</tool_call>'
    )


def one_of(description: str, *words: str) -> dict[str, Any]:
    """The schema of an argument that is one of some words."""
    return {"description": description, "enum": list(words), "type": "string"}


def of_type(kind: str, description: str) -> dict[str, Any]:
    """The schema of an argument."""
    return {"description": description, "type": kind}


def parameters(**properties: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of a function's arguments, of which only the action is always given."""
    return {"properties": properties, "required": ["action"], "type": "object"}
