"""Other libraries' message contents, and random values of JSON schemas."""

from __future__ import annotations

import base64
import io
from typing import Any

import jsonschema
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from vlrl.envs.adapters.contents import image_of, observation_of
from vlrl.envs.adapters.json_values import random_value

PIXELS = np.arange(4 * 5 * 3, dtype=np.uint8).reshape(4, 5, 3)


def encoded(kind: str = "PNG") -> str:
    stream = io.BytesIO()
    Image.fromarray(PIXELS).save(stream, kind, **({"lossless": True} if kind == "WEBP" else {}))
    return base64.b64encode(stream.getvalue()).decode()


@pytest.mark.parametrize("kind", ["PNG", "WEBP"])
def test_the_same_image_in_every_form(kind: str) -> None:
    text = encoded(kind)
    forms = [
        PIXELS,
        PIXELS.tolist(),
        Image.fromarray(PIXELS),
        text,
        f"data:image/{kind.lower()};base64,{text}",
    ]
    for form in forms:
        assert np.array_equal(np.asarray(image_of(form)), PIXELS)


def test_jpeg_and_gif_are_known_by_their_beginning() -> None:
    for kind in ("JPEG", "GIF"):
        image = image_of(encoded(kind))
        assert image is not None and (image.size, image.mode) == ((5, 4), "RGB")


@pytest.mark.parametrize(
    "value",
    [
        *("", "word", None, 3, [], {"a": 1}, "http://127.0.0.1/a.png", np.zeros((2, 2))),
        *([[1, 2, 3]], [["abc"]], [[[1, 2], [3, 4]]], [[[1, 2, 300]]], [[[0.5, 0.1, 0.2]]]),
        [[[1, 2, 3]], [[1, 2, 3], [1, 2, 3]]],
    ],
)
def test_what_is_no_image_is_none(value: Any) -> None:
    assert image_of(value) is None


@given(st.one_of(st.text(), st.recursive(st.integers(), lambda inner: st.lists(inner, max_size=3))))
def test_no_plain_value_raises(value: Any) -> None:
    if not (
        isinstance(value, str) and value.startswith(("data:image/", "iVBORw0KGgo", "/9j/", "UklGR", "R0lGOD"))
    ):
        image_of(value)


def test_a_broken_image_is_said() -> None:
    for text in (encoded()[:40], "iVBORw0KGgo!!", "data:image/png;base64,AAAA", "data:image/svg+xml,<svg/>"):
        with pytest.raises(ValueError, match="base64"):
            image_of(text)


def test_messages_become_one_observation() -> None:
    url = f"data:image/png;base64,{encoded()}"
    parts = [
        {"type": "text", "text": "one"},
        {"type": "image_url", "image_url": {"url": url}},
        {"type": "image", "image": PIXELS},
    ]
    shown = observation_of(["zero", parts, None, ["two"]], "tool")
    assert (shown.text, shown.role, len(shown.images)) == ("zero\none\ntwo", "tool", 2)
    assert observation_of(["a", "b"], separator="").text == "ab"


@pytest.mark.parametrize(
    "part",
    [
        {"type": "image_url", "image_url": {"url": "http://127.0.0.1:1/a.png"}},
        {"type": "image_url", "image_url": "file:///etc/passwd"},
        {"type": "image", "image": "/etc/passwd"},
        {"type": "audio"},
        3,
    ],
)
def test_nothing_is_fetched(part: Any) -> None:
    with pytest.raises(ValueError, match=r"nothing is fetched|no text and no image"):
        observation_of([[part]])


SCHEMAS: list[dict[str, Any]] = [
    {"type": "integer", "minimum": 3, "maximum": 5},
    {"type": "integer", "exclusiveMinimum": 3, "exclusiveMaximum": 5},
    {"type": "integer", "multipleOf": 4, "minimum": 1, "maximum": 9},
    {"type": "integer", "maximum": -20},
    {"type": "number", "minimum": -1, "exclusiveMaximum": 1},
    {"type": "string", "minLength": 12, "maxLength": 14},
    {"type": ["string", "null"]},
    {"type": "boolean"},
    {"enum": ["a", 1, None]},
    {"const": {"x": 1}},
    {
        "anyOf": [
            {"type": "null"},
            {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 3},
        ]
    },
    {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}]},
    {"allOf": [{"$ref": "#/$defs/move"}], "$defs": {"move": {"enum": ["up", "down"]}}},
    {
        "type": "object",
        "required": ["where", "how"],
        "properties": {"where": {"$ref": "#/$defs/p"}, "how": {"oneOf": [{"const": 1}, {"const": 2}]}},
        "$defs": {"p": {"type": "object", "required": ["x"], "properties": {"x": {"type": "number"}}}},
    },
]


@given(st.sampled_from(SCHEMAS), st.integers(0, 2**32))
def test_random_values_are_allowed_and_repeatable(schema: dict[str, Any], seed: int) -> None:
    if schema.get("allOf"):
        value = random_value(schema, np.random.default_rng(seed))
        assert value in ("up", "down")
    else:
        value = random_value(schema, np.random.default_rng(seed))
        jsonschema.validate(value, schema)
    assert value == random_value(schema, np.random.default_rng(seed))


def test_a_schema_that_holds_itself_ends() -> None:
    schema = {"$ref": "#/$defs/n", "$defs": {"n": {"type": "object", "required": ["n"], "properties": {}}}}
    schema["$defs"]["n"]["properties"] = {"n": {"$ref": "#/$defs/n"}}
    assert random_value(schema, np.random.default_rng(0)) is not None
