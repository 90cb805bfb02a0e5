"""A function's parameters as JSON schema: from its type hints and its docstring in Google's style."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Mapping
from typing import Any

from pydantic import ConfigDict, PydanticSchemaGenerationError, TypeAdapter
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticUserError

from vlrl.errors import ConfigError

_SECTION = re.compile(r"\s*(Args|Returns|Raises|Yields|Examples?|Notes?):\s*")
_ARGUMENT = re.compile(r"(\w+)(?:\s*\([^)]*\))?:\s*(.*)")
_STRICT = ConfigDict(strict=True, allow_inf_nan=False)
_WORDS = {
    "string": "a string",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "object": "an object",
    "null": "null",
}


def adapter(hint: Any, where: str) -> TypeAdapter[Any]:
    """What validates values of a type as strictly as JSON does: "1" is not a number, 1 is not a truth value.

    Raises:
        ConfigError: naming `where`, for a type that JSON cannot express.
    """
    try:
        made: TypeAdapter[Any] = TypeAdapter(hint, config=_STRICT)
        unsupported = "$defs" in made.json_schema()
    except (PydanticUserError, PydanticSchemaGenerationError, PydanticInvalidForJsonSchema):
        unsupported = True
    if unsupported:
        raise ConfigError(
            f"{where}: {hint!r} is not a type that a tool can be given; "
            "use str, int, float, bool, Literal, list, tuple, dict or None, and combinations of these"
        )
    return made


def type_schema(adapter: TypeAdapter[Any]) -> dict[str, Any]:
    """The JSON schema of a type, in the words that chat templates and transformers' get_json_schema use."""
    return _plain(adapter.json_schema())


def _plain(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A schema of pydantic's without titles, with "nullable" for null, and plain types in one list."""
    said = {key: value for key, value in schema.items() if key not in ("title", "default")}
    if said.get("items") == {} or said.get("additionalProperties") is True:
        said = {key: value for key, value in said.items() if key not in ("items", "additionalProperties")}
    for key in ("items", "additionalProperties"):
        if isinstance(said.get(key), Mapping):
            said[key] = _plain(said[key])
    if "prefixItems" in said:
        said["prefixItems"] = [_plain(item) for item in said["prefixItems"]]
    if "const" in said:
        said["enum"] = [said.pop("const")]
    if "enum" in said and "type" not in said:
        said["type"] = list(dict.fromkeys(_type_of(value) for value in said["enum"]))
    if "anyOf" not in said:
        return said
    branches = [_plain(branch) for branch in said.pop("anyOf")]
    kept = [branch for branch in branches if branch != {"type": "null"}]
    nullable = {"nullable": True} if len(kept) < len(branches) else {}
    if len(kept) == 1:
        return {**said, **kept[0], **nullable}
    if all(branch.keys() == {"type"} for branch in kept):
        return {**said, "type": sorted(branch["type"] for branch in kept), **nullable}
    return {**said, "anyOf": kept, **nullable}


def _type_of(value: Any) -> str:
    names = {bool: "boolean", int: "integer", float: "number", str: "string", type(None): "null"}
    return names[type(value)]


def in_words(schema: Mapping[str, Any]) -> str:
    """How a value of a schema looks, for a message: "a list of 4 numbers"."""
    if "anyOf" in schema:
        said = " or ".join(in_words(branch) for branch in schema["anyOf"])
    elif "enum" in schema:
        said = "one of " + ", ".join(json.dumps(value, ensure_ascii=False) for value in schema["enum"])
    elif isinstance(schema.get("type"), list):
        said = " or ".join(_WORDS[name] for name in schema["type"])
    elif schema.get("type") == "array":
        said = _list_in_words(schema)
    else:
        said = _WORDS.get(str(schema.get("type")), "any value") + _bounds_in_words(schema)
    return said + (" or null" if schema.get("nullable") else "")


def _list_in_words(schema: Mapping[str, Any]) -> str:
    if "prefixItems" in schema:
        return "a list of " + ", ".join(in_words(item) for item in schema["prefixItems"])
    least, most = schema.get("minItems"), schema.get("maxItems")
    length = (
        f"{least} of them" if least == most else f"{least or 0} to {'any number' if most is None else most}"
    )
    each = f", each {in_words(schema['items'])}" if "items" in schema else ""
    return "a list" + each + (f", {length}" if least or most is not None else "")


def _bounds_in_words(schema: Mapping[str, Any]) -> str:
    bounds = {
        "minimum": "at least",
        "maximum": "at most",
        "exclusiveMinimum": "above",
        "exclusiveMaximum": "below",
        "minLength": "of at least so many characters:",
        "maxLength": "of at most so many characters:",
    }
    said = [f"{words} {schema[key]}" for key, words in bounds.items() if key in schema]
    return f" ({', '.join(said)})" if said else ""


def read_docstring(text: str | None) -> tuple[str, dict[str, str]]:
    """A docstring's first line, and what its Args section says of each argument, each as one line.

    An argument's name stands at the section's own indentation; what is further in continues it.
    """
    lines = inspect.cleandoc(text or "").splitlines()
    described: dict[str, str] = {}
    section, margin, name = "", None, ""
    for line in lines[1:]:
        if heading := _SECTION.fullmatch(line):
            section, margin, name = heading.group(1), None, ""
        elif section == "Args" and line.strip():
            indent = len(line) - len(line.lstrip())
            margin = indent if margin is None else margin
            if indent <= margin and (argument := _ARGUMENT.fullmatch(line.strip())):
                name = argument.group(1)
                described[name] = argument.group(2).strip()
            elif name:
                described[name] = f"{described[name]} {line.strip()}".strip()
    return (lines[0].strip() if lines else ""), described
