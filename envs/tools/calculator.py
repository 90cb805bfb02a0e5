"""A calculator: arithmetic read into a tree and worked out node by node. Nothing is evaluated."""

from __future__ import annotations

import ast
import math
import operator
import warnings
from collections.abc import Callable
from typing import Any

from vlrl.envs.tools.declare import ToolError, tool

MAX_CHARS = 500
MAX_DEPTH = 50
MAX_BITS = 4096
"""Of a whole number, also on the way to the result."""

_SPELLINGS = str.maketrans({"×": "*", "·": "*", "÷": "/", "−": "-", "^": "**"})
_CONSTANTS = {"pi": math.pi, "e": math.e}
_OPERATORS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}


def _power(base: float, exponent: float) -> float:
    whole = isinstance(base, int) and isinstance(exponent, int) and abs(base) > 1
    if whole and int(base).bit_length() * exponent > 2 * MAX_BITS:
        raise OverflowError
    value: Any = base**exponent
    if isinstance(value, complex):
        raise ToolError(f"{base:g} to the power of {exponent:g} is no real number")
    number: float = value
    return number


def _factorial(number: float) -> int:
    if number != int(number) or not 0 <= number <= 500:
        raise ToolError("factorial is of a whole number from 0 to 500")
    return math.factorial(int(number))


def _round(number: float, digits: float = 0) -> float:
    value = round(number, max(-400, min(400, int(digits))))
    return int(value) if digits <= 0 else value


_FUNCTIONS: dict[str, tuple[Callable[..., float], int, int]] = {
    **{
        name: (getattr(math, name), 1, 1)
        for name in (
            *("sqrt", "cbrt", "exp", "log2", "log10", "floor", "ceil"),
            *("sin", "cos", "tan", "asin", "acos", "atan", "degrees", "radians"),
        )
    },
    "log": (math.log, 1, 2),
    "ln": (math.log, 1, 1),
    "abs": (abs, 1, 1),
    "round": (_round, 1, 2),
    "factorial": (_factorial, 1, 1),
    "hypot": (math.hypot, 1, 8),
    "min": (min, 2, MAX_CHARS),
    "max": (max, 2, MAX_CHARS),
}
"""name → function, least and most arguments."""


@tool
def calculator(expression: str) -> str:
    """Work out an arithmetic expression.

    Args:
        expression: such as (3 + 4.5) * sqrt(2) / 7 ** 2; with + - * / // % **, parentheses, pi, e, sqrt,
            cbrt, exp, log(x, base), ln, log2, log10, sin, cos, tan, asin, acos, atan (in radians), degrees,
            radians, abs, round(x, digits), floor, ceil, factorial, hypot, min, max.
    """
    if len(expression) > MAX_CHARS:
        raise ToolError(f"the expression has {len(expression)} characters; {MAX_CHARS} are allowed")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of Python's parser, on what a model writes
            tree = ast.parse(expression.translate(_SPELLINGS).strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:  # all of them mean: not parsed
        raise ToolError(
            f"{expression!r:.60} is no arithmetic expression; write it like 2 * (3 + 4)"
        ) from error
    try:
        value = _value(tree, 0)
    except ZeroDivisionError as error:
        raise ToolError("division by zero") from error
    except OverflowError as error:
        raise ToolError("a number on the way is too large") from error
    except ValueError as error:
        raise ToolError(f"the result is no real number: {error}") from error
    if isinstance(value, float) and not math.isfinite(value):
        raise ToolError("a number on the way is too large")
    return str(value) if isinstance(value, int) else f"{value:.12g}"


def _value(node: ast.expr, depth: int) -> float:
    """The number that a tree stands for.

    Raises:
        ToolError: for anything but numbers, operators and the functions above.
        OverflowError: for a whole number of more than MAX_BITS.
    """
    if depth > MAX_DEPTH:
        raise ToolError(f"nested deeper than {MAX_DEPTH}")
    value = _number(node, depth + 1)
    if isinstance(value, int) and value.bit_length() > MAX_BITS:
        raise OverflowError
    return value


def _number(node: ast.expr, depth: int) -> float:
    if isinstance(node, ast.Constant):
        if isinstance(node.value, bool) or not isinstance(node.value, int | float):
            raise ToolError(f"{node.value!r:.40} is not a number")
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.UAdd | ast.USub):
        operand = _value(node.operand, depth)
        return -operand if isinstance(node.op, ast.USub) else operand
    if isinstance(node, ast.BinOp) and (isinstance(node.op, ast.Pow) or type(node.op) in _OPERATORS):
        work_out = _power if isinstance(node.op, ast.Pow) else _OPERATORS[type(node.op)]
        return work_out(_value(node.left, depth), _value(node.right, depth))
    if isinstance(node, ast.Name):
        if node.id in _CONSTANTS:
            return _CONSTANTS[node.id]
        raise ToolError(f"{node.id:.40} is not known; known: {', '.join((*_CONSTANTS, *_FUNCTIONS))}")
    if isinstance(node, ast.Call):
        return _call(node, depth)
    raise ToolError(f"{type(node).__name__} is no arithmetic; write numbers, + - * / // % ** and functions")


def _call(node: ast.Call, depth: int) -> float:
    name = node.func.id if isinstance(node.func, ast.Name) else None
    if name not in _FUNCTIONS or node.keywords:
        raise ToolError(f"only these functions can be called: {', '.join(_FUNCTIONS)}")
    function, least, most = _FUNCTIONS[name]
    if not least <= len(node.args) <= most:
        raise ToolError(f"{name} takes {least} to {most} numbers, not {len(node.args)}")
    return function(*(_value(argument, depth) for argument in node.args))
