"""`@tool`: a plain typed function becomes one that a model can call; docs/tools.md has an example.

A tool with options is a class: its constructor takes them and `__call__` is the function. `name` is the
tool's name if the class has it, else the class's name in lower case; `note` is added to its description.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, get_type_hints

import numpy as np
from PIL import Image
from pydantic import TypeAdapter, ValidationError

from vlrl.coordinates import Canvas
from vlrl.envs.tools.schema import adapter, in_words, read_docstring, type_schema
from vlrl.errors import ConfigError, ResourceError

GIVEN = ("image", "images", "canvases", "rng")
"""Parameters that the environment fills in: the last image seen, all images seen (PIL, as they were
before they were shrunken for the model), their sizes (see `Canvas`), and a numpy Generator."""

MAX_TEXT = 8000
"""Longest text of one result; the rest is left out."""


class ToolError(Exception):
    """Raised by a tool; the model is shown the message about its arguments."""


@dataclass(frozen=True, slots=True)
class Given:
    """What the environment knows and tools may ask for, by the names in GIVEN."""

    images: Sequence[Image.Image] = ()
    canvases: Sequence[Canvas] = ()
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))

    def value(self, name: str) -> Any:
        """The argument for a parameter in GIVEN; images are copies, which the tool may change.

        Raises:
            ToolError: if the last image is wanted and there is none.
        """
        if name == "image":
            if not self.images:
                raise ToolError("there is no image")
            return self.images[-1].copy()
        if name == "images":
            return [image.copy() for image in self.images]
        return list(self.canvases) if name == "canvases" else self.rng


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a call gave.

    Attributes:
        parts: texts and images in their order.
        failed: it is a message about what went wrong.
    """

    parts: tuple[str | Image.Image, ...]
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Tool:
    """A function that a model may call.

    Attributes:
        name: by which it is called.
        schema: {"type": "function", "function": {name, description, parameters}}, as chat templates take it.
        function: what is called.
    """

    name: str
    schema: Mapping[str, Any]
    function: Callable[..., Any]
    _adapters: Mapping[str, TypeAdapter[Any]]
    _given: tuple[str, ...]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The plain function."""
        return self.function(*args, **kwargs)

    def run(self, arguments: Mapping[str, Any], given: Given | None = None) -> ToolResult:
        """Call it with a model's arguments; whatever is wrong becomes a short text.

        Raises:
            ConfigError, ResourceError: from the tool: it is the machine that is not as it must be.
        """
        try:
            context = given or Given()
            filled = {name: context.value(name) for name in self._given}
            value = self.function(**self.validated(arguments), **filled)
            return ToolResult(tuple(_parts(value)))
        except ToolError as error:
            return ToolResult((shortened(f"Error: {self.name}: {error}", MAX_TEXT),), failed=True)
        except (ConfigError, ResourceError):
            raise
        except Exception as error:  # of a stranger's function, brought about by a model's arguments
            said = f"Error: {self.name} failed: {type(error).__name__}: {error}"
            return ToolResult((shortened(said, 300),), failed=True)

    def validated(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments as the function's types.

        Raises:
            ToolError: naming the argument that is missing, unknown or wrong, and how it should look.
        """
        parameters = self.schema["function"]["parameters"]
        known = ", ".join(self._adapters) or "none"
        for name in arguments:
            if name not in self._adapters:
                raise ToolError(f"there is no argument {_said(name)}; the arguments are: {known}")
        for name in parameters.get("required", ()):
            if name not in arguments:
                words = in_words(parameters["properties"][name])
                raise ToolError(f'argument "{name}" is missing; it must be {words}')
        values = {}
        for name, value in arguments.items():
            try:
                values[name] = self._adapters[name].validate_json(json.dumps(value, allow_nan=False))
            except (ValidationError, ValueError, TypeError, RecursionError) as error:
                words = in_words(parameters["properties"][name])
                raise ToolError(f'argument "{name}" must be {words}, not {_said(value)}') from error
        return values


def tool(function: Callable[..., Any]) -> Tool:
    """Make a tool of a typed function, or of an object with a typed `__call__`.

    Raises:
        ConfigError: naming the parameter that has no type, or none that JSON can express.
    """
    if isinstance(function, Tool):
        return function
    plain = inspect.isfunction(function) or inspect.ismethod(function)
    called = function if plain else function.__call__  # type: ignore[operator]
    name = function.__name__ if plain else getattr(function, "name", type(function).__name__.lower())
    description, described = read_docstring(called.__doc__)
    if not description:
        raise ConfigError(f"tool {name!r} has no docstring, whose first line tells the model what it does")
    if note := getattr(function, "note", ""):
        description = f"{description} {note}"
    hints = get_type_hints(called, include_extras=True)
    parameters = inspect.signature(called).parameters.values()
    asked = [parameter for parameter in parameters if parameter.name not in GIVEN]
    adapters = {p.name: _adapter(p, hints, f"tool {name!r}, parameter {p.name!r}") for p in asked}
    properties = {
        key: {**type_schema(made), **({"description": described[key]} if key in described else {})}
        for key, made in adapters.items()
    }
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    if required := [parameter.name for parameter in asked if parameter.default is parameter.empty]:
        schema["required"] = required
    body = {"name": name, "description": description, "parameters": schema}
    given = tuple(parameter.name for parameter in parameters if parameter.name in GIVEN)
    return Tool(name, {"type": "function", "function": body}, function, adapters, given)


def _adapter(parameter: inspect.Parameter, hints: Mapping[str, Any], where: str) -> TypeAdapter[Any]:
    if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
        raise ConfigError(f"{where}: a tool's arguments have names; leave out *, ** and /")
    if parameter.name not in hints:
        raise ConfigError(f"{where} has no type; write {parameter.name}: str, for instance")
    return adapter(hints[parameter.name], where)


def _parts(value: Any) -> list[str | Image.Image]:
    """What a tool returned, as texts and images."""
    if isinstance(value, Image.Image):
        return [value.convert("RGB")]
    if isinstance(value, str | Real):
        return [shortened(str(value), MAX_TEXT)]
    if value is None:
        return ["Done."]
    mixed = isinstance(value, list) and any(isinstance(item, Image.Image) for item in value)
    if mixed or isinstance(value, tuple):
        return [part for item in value for part in _parts(item)]
    return [shortened(json.dumps(value, ensure_ascii=False), MAX_TEXT)]


def _said(value: Any) -> str:
    return shortened(json.dumps(value, ensure_ascii=False, default=repr), 60)


def shortened(text: str, most: int) -> str:
    """A text's beginning and end."""
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]} … ({len(text) - 2 * half} characters left out) … {text[-half:]}"
