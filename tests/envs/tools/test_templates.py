"""Tools as chat templates show them to a model, through a real processor."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoProcessor

from vlrl.envs.tools.env import ToolEnv
from vlrl.parsing.tool_calls import ParsedCall, parse_calls, write_call

TOOLS = ["crop", "zoom", "rotate", "flip", "draw", "calculator"]

# What Qwen3-VL's published template does with tools, calls and results, in short: Hermes' format.
HERMES = (
    "{% if tools %}<|im_start|>system\n# Tools\n<tools>"
    "{% for tool in tools %}{{ '\n' + tool | tojson }}{% endfor %}{{ '\n</tools><|im_end|>\n' }}{% endif %}"
    "{% for message in messages %}"
    "<|im_start|>{{ 'user\n<tool_response>' if message.role == 'tool' else message.role }}\n"
    "{% if message.content is string %}{{ message.content }}"
    "{% else %}{% for part in message.content %}"
    "{% if part.type == 'image' %}<|vision_start|><|image_pad|><|vision_end|>"
    "{% else %}{{ part.text }}{% endif %}{% endfor %}{% endif %}"
    "{% for call in message.tool_calls or [] %}"
    '<tool_call>\n{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}'
    "\n</tool_call>{% endfor %}"
    "{{ '\n</tool_response>' if message.role == 'tool' }}<|im_end|>\n{% endfor %}"
)


@pytest.fixture(scope="module")
def processor(tiny_model: Path) -> Any:
    return AutoProcessor.from_pretrained(tiny_model)


def test_every_schema_reaches_the_model_as_it_is(processor: Any) -> None:
    env = ToolEnv(TOOLS)
    text = processor.apply_chat_template(
        [{"role": "user", "content": "?"}], tools=list(env.tools), chat_template=HERMES, tokenize=False
    )
    offered = re.search(r"<tools>\n(.*)\n</tools>", text, re.DOTALL)
    assert offered is not None
    assert [json.loads(line) for line in offered.group(1).splitlines()] == env.tools
    assert [tool["function"]["name"] for tool in env.tools] == TOOLS


def test_a_call_is_written_as_the_template_writes_it_and_read_back(processor: Any) -> None:
    function = {"name": "zoom", "arguments": {"box": [1, 2.5, 3, 4], "image_number": 2}}
    messages = [
        {"role": "user", "content": "?"},
        {"role": "assistant", "content": "", "tool_calls": [{"type": "function", "function": function}]},
        {"role": "tool", "content": [{"type": "image"}, {"type": "text", "text": "[image 3: 9×9]"}]},
    ]
    text = processor.apply_chat_template(messages, chat_template=HERMES, tokenize=False)
    (call,) = parse_calls(text)
    assert isinstance(call, ParsedCall) and {"name": call.name, "arguments": call.arguments} == function
    assert text[slice(*call.span)] == write_call("zoom", function["arguments"])
    assert (
        "<tool_response>\n<|vision_start|><|image_pad|><|vision_end|>[image 3: 9×9]\n</tool_response>" in text
    )


def test_a_template_without_tools_needs_the_system_prompt(processor: Any) -> None:
    told = ToolEnv(TOOLS, told_by="system_prompt")
    assert told.tools == []
    messages = [{"role": "system", "content": told.system_prompt}, {"role": "user", "content": "?"}]
    text = processor.apply_chat_template(messages, tokenize=False)
    offered = re.search(r"<tools>\n(.*)\n</tools>", text, re.DOTALL)
    assert offered is not None
    assert [json.loads(line) for line in offered.group(1).splitlines()] == ToolEnv(TOOLS).tools
    assert ToolEnv(TOOLS).system_prompt == ""
