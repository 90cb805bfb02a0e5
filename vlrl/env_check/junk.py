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
}
"""What it is → the text."""
