"""Python literals and one call of literals, read from a model's text. Nothing is ever evaluated."""

from __future__ import annotations

import ast
import warnings
from typing import Any, NamedTuple

from vlrl.parsing.strict_json import Unreadable

MAX_CHARS = 4000
MAX_DEPTH = 16


class Call(NamedTuple):
    """name(*positional, **named), every argument a literal."""

    name: str
    positional: list[Any]
    named: dict[str, Any]


def read_literal(text: str) -> Any:
    """A text's value: numbers, strings, None, True, False, lists, dicts with text keys; or a Call of those.

    A tuple becomes a list. The text is parsed into a tree by Python's own parser, within bounds of length and
    depth, and the tree is walked: names, operators, subscripts, f-strings and everything else are refused.

    Raises:
        Unreadable: if the text is anything else.
    """
    if len(text) > MAX_CHARS or _depth(text) > MAX_DEPTH:
        raise Unreadable(f"longer than {MAX_CHARS} characters, or nested deeper than {MAX_DEPTH}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of Python's parser, on the backslashes in a model's strings
            tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:  # all of them mean: not parsed
        raise Unreadable(f"{text!r:.60} is not a literal and no call") from error
    if not isinstance(tree, ast.Call):
        return _value(tree)
    if any(keyword.arg is None for keyword in tree.keywords):
        raise Unreadable("** in a call")
    named = _mapping([str(k.arg) for k in tree.keywords], [k.value for k in tree.keywords])
    return Call(_dotted(tree.func), [_value(node) for node in tree.args], named)


def _value(node: ast.expr) -> Any:
    if isinstance(node, ast.Constant) and (node.value is None or isinstance(node.value, str | int | float)):
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        number = node.operand.value if isinstance(node.operand, ast.Constant) else None
        if isinstance(number, int | float) and not isinstance(number, bool):
            return -number
    if isinstance(node, ast.List | ast.Tuple):
        return [_value(item) for item in node.elts]
    if isinstance(node, ast.Dict):
        keys = [key.value if isinstance(key, ast.Constant) else None for key in node.keys]
        if all(isinstance(key, str) for key in keys):
            return _mapping([str(key) for key in keys], node.values)
    raise Unreadable(f"{type(node).__name__} is not a literal")


def _mapping(keys: list[str], values: list[ast.expr]) -> dict[str, Any]:
    if len(set(keys)) < len(keys):
        raise Unreadable("a key occurs twice")
    return {key: _value(value) for key, value in zip(keys, values, strict=True)}


def _dotted(node: ast.expr) -> str:
    """A function's name: click, or pyautogui.click."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return f"{node.value.id}.{node.attr}"
    raise Unreadable("a call of something that is not a name")


def _depth(text: str) -> int:
    depth = most = 0
    for character in text:
        if character in "([{":
            depth += 1
            most = max(most, depth)
        elif character in ")]}":
            depth -= 1
    return most
