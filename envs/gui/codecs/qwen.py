"""What Qwen's codecs share: one function, its schema in <tools>, calls in <tool_call> tags, common actions.

The form is Hermes', as Qwen's chat template and cookbooks write it; the sentences are ours.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from vlrl.coordinates import CoordinateFrame
from vlrl.envs.gui.actions import Action, Answer, Finish, TypeText, Wait
from vlrl.envs.gui.codecs.grammar.frames import Grid, shown_extent
from vlrl.envs.gui.codecs.grammar.grammar_codec import GrammarCodec
from vlrl.envs.gui.codecs.grammar.json_text import said_in_call
from vlrl.envs.gui.codecs.grammar.parsed_call import STATUSES, ParsedAction, seconds
from vlrl.envs.gui.screen import Form
from vlrl.parsing.tool_calls import write_call

Version = Literal["2.5", "3"]


class QwenCodec(GrammarCodec):
    """One function in <tool_call> tags.

    Attributes:
        function: its name.
        description: the function's description for the model, with {screen} for the resolution.
        version: of Qwen-VL.
    """

    function: ClassVar[str]
    description: ClassVar[str]

    def __init__(self, name: str, frame: CoordinateFrame) -> None:
        super().__init__(name, frame)
        self.version: Version = "2.5" if name.startswith("qwen2_5") else "3"
        self._parameters = self._schema()

    @abstractmethod
    def _schema(self) -> dict[str, Any]:
        """The JSON schema of the function's arguments."""

    @abstractmethod
    def _action(self, said: ParsedAction, grid: Grid) -> Action | None:
        """What a call of one of the function's own actions means; None for another."""

    @abstractmethod
    def _arguments(self, action: Action, grid: Grid) -> dict[str, Any] | None:
        """The call of one of the function's own actions; None for another."""

    def instructions(self, screen: tuple[int, int], form: Form) -> str:
        """See `Codec`."""
        width, height = shown_extent(self._frame, screen)
        description = self.description.format(screen=f"{width:g}x{height:g}")
        return qwen_prompt(self.version, self.function, description, self._parameters)

    def _read(self, text: str, grid: Grid) -> Action:
        said = said_in_call(text, self.function, "action")
        said.check_names(self._parameters["properties"])
        return self._action(said, grid) or _common_action(said)

    def _written(self, action: Action, grid: Grid) -> str | None:
        arguments = self._arguments(action, grid) or _common_arguments(action)
        known = self._parameters["properties"]["action"]["enum"]
        return write_call(self.function, arguments) if arguments and arguments["action"] in known else None


def _common_action(said: ParsedAction) -> Action:
    match said.name:
        case "type":
            return TypeText(said.text("text"))
        case "wait":
            return Wait(said.milliseconds("time", 1000))
        case "terminate":
            return Finish(said.choice("status", STATUSES))
        case "answer":
            return Answer(said.text("text"))
    raise said.unknown()


def _common_arguments(action: Action) -> dict[str, Any] | None:
    match action:
        case TypeText(text=text):
            return {"action": "type", "text": text}
        case Wait(duration_ms=duration):
            return {"action": "wait", "time": seconds(duration)}
        case Finish(success=success):
            return {"action": "terminate", "status": "success" if success else "failure"}
        case Answer(text=text):
            return {"action": "answer", "text": text}
    return None


def qwen_prompt(version: Version, name: str, description: str, parameters: Mapping[str, Any]) -> str:
    """The system message that declares a Qwen model's one function.

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


def action_of(actions: Mapping[str, str]) -> dict[str, Any]:
    """The schema of the argument that says what to do.

    Args:
        actions: names → what they do.
    """
    return one_of(
        "What to do:\n" + "\n".join(f"* `{name}`: {does}." for name, does in actions.items()), *actions
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
