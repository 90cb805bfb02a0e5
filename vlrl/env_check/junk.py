"""Texts that are no action of any environment, and yet come out of models."""

from __future__ import annotations

JUNK = {
    "nothing": "",
    "white space": " \n\t ",
    "words": "I am not sure what to do here.",
    "an empty action": "<action></action>",
    "an empty answer": "<answer></answer>",
    "an action that is none": "<action>no such action, 1, 2, 3</action>",
    "a tag that is not closed": "<action>up",
    "a tag that is not opened": "up</action>",
    "tags the wrong way round": "</action>up<action>",
    "tags without end": "<action>" * 2000,
    "a number that is none": "<action>nan</action>",
    "a number too large": "<action>" + "9" * 5000 + "</action>",
    "a list too deep": "<action>" + "[" * 5000 + "</action>",
    "code": "<action>__import__('os').getcwd()</action>",
    "a path": "<action>../../etc/passwd</action>",
    "control characters": "<action>\x00\x1b[2J\u202e</action>",
    "half a character": "<action>\ud83d</action>",
    "a tool call cut short": '<tool_call>\n{"name": "',
    "a click far outside": "<action>click 999999 -999999</action>",
    "a tool call of no place": '<tool_call>\n{"name": "computer_use", "arguments": {"action": "left_click", '
    '"coordinate": [NaN, 1e999]}}\n</tool_call>',
    "a box of no number": "Thought: go on.\nAction: click(start_box='<|box_start|>(1e999,NaN)<|box_end|>')",
    "a script of clicks": "```python\nimport os\npyautogui.click(os.getpid(), int('7'))\n```",
    "JSON that is no action": '{"action_type": "click", "x": "__import__(\'os\')", "y": null}',
}
"""What it is → the text."""
