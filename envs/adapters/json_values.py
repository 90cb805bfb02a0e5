"""Values that a JSON schema allows, drawn without looking: for random players."""

from __future__ import annotations

import string
from collections.abc import Mapping
from typing import Any

import numpy as np

_MAX_DEPTH = 8
_WORDS = ("yes", "no", "left", "right", "one", "two")


def random_value(schema: Mapping[str, Any], rng: np.random.Generator) -> Any:
    """A value that the schema allows, as plain JSON types.

    Reads type, enum, const, anyOf, oneOf, allOf, $ref, required, minimum and maximum (also exclusive),
    multipleOf, minItems, maxItems, prefixItems, minLength and maxLength. Without a bound, the range is small;
    a schema that asks for more than these words say (a pattern, say) may refuse what is drawn.
    """
    return _drawn(schema, schema, rng, 0)


def _drawn(schema: Mapping[str, Any], root: Mapping[str, Any], rng: np.random.Generator, depth: int) -> Any:
    if depth > _MAX_DEPTH:
        return None
    if "$ref" in schema:
        return _drawn(_target(schema["$ref"], root), root, rng, depth + 1)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][int(rng.integers(len(schema["enum"])))]
    for several in ("anyOf", "oneOf"):
        if several in schema:
            options = schema[several]
            return _drawn(options[int(rng.integers(len(options)))], root, rng, depth + 1)
    if "allOf" in schema:
        merged = {key: value for part in schema["allOf"] for key, value in part.items()}
        return _drawn({**merged, **{k: v for k, v in schema.items() if k != "allOf"}}, root, rng, depth + 1)
    kind = schema.get("type", "object" if "properties" in schema else "string")
    if isinstance(kind, list):
        kind = kind[int(rng.integers(len(kind)))]
    if kind == "object":
        asked = schema.get("required", ())
        properties = schema.get("properties", {})
        return {key: _drawn(properties.get(key, {}), root, rng, depth + 1) for key in asked}
    if kind == "array":
        return _array(schema, root, rng, depth)
    return _scalar(kind, schema, rng)


def _array(schema: Mapping[str, Any], root: Mapping[str, Any], rng: np.random.Generator, depth: int) -> Any:
    if "prefixItems" in schema:
        return [_drawn(item, root, rng, depth + 1) for item in schema["prefixItems"]]
    low = int(schema.get("minItems", 0))
    length = int(rng.integers(low, min(int(schema.get("maxItems", low + 3)), low + 3) + 1))
    return [_drawn(schema.get("items", {}), root, rng, depth + 1) for _ in range(length)]


def _scalar(kind: str, schema: Mapping[str, Any], rng: np.random.Generator) -> Any:
    if kind in ("integer", "number"):
        return _number(kind, schema, rng)
    if kind == "boolean":
        return bool(rng.integers(2))
    if kind == "null":
        return None
    word = _WORDS[int(rng.integers(len(_WORDS)))]
    low = int(schema.get("minLength", 0))
    letters = "".join(rng.choice(list(string.ascii_lowercase), max(0, low - len(word))))
    return (word + letters)[: int(schema.get("maxLength", len(word) + len(letters)))]


def _number(kind: str, schema: Mapping[str, Any], rng: np.random.Generator) -> float:
    low = schema.get("minimum", schema.get("exclusiveMinimum"))
    high = schema.get("maximum", schema.get("exclusiveMaximum"))
    low = low if low is not None else (0 if high is None or high > 0 else high - 10)
    high = high if high is not None else low + 10
    if kind == "number" and "multipleOf" not in schema:
        return float(rng.uniform(low, high))  # uniform leaves out `high`; `low` itself has no weight
    unit = schema.get("multipleOf", 1)
    first = int(-(-low // unit)) + (low % unit == 0 and schema.get("exclusiveMinimum") == low)
    last = int(high // unit) - (high % unit == 0 and schema.get("exclusiveMaximum") == high)
    value = int(rng.integers(first, last + 1)) * unit
    return int(value) if kind == "integer" else float(value)


def _target(reference: str, root: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Any = root
    for key in reference.removeprefix("#/").split("/"):
        found = found[key]
    return dict(found)
