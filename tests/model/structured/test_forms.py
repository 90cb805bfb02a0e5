"""Forms as rows and environments give them: one spelling for each; what is none is named with its place."""

from __future__ import annotations

import json
from typing import Any

import pytest
from builders import make_config
from hypothesis import given
from hypothesis import strategies as st

from vlrl.errors import DataError
from vlrl.model.structured.forms import form_of, structured_of

FORMS = [
    {"regex": "[0-9]+"},
    {"choice": ["left", 'say "stop"', "ü\\"]},
    {"grammar": 'root ::= "a" | "b"'},
    {"json_schema": {"type": "object", "properties": {"z": {"const": None}, "a": {"type": "integer"}}}},
    {"structural_tag": {"format": {"type": "regex", "pattern": "a+"}}},
]
SCHEMAS = st.dictionaries(
    st.text(max_size=3), st.none() | st.integers() | st.text(max_size=3) | st.lists(st.none(), max_size=2)
)


@pytest.mark.parametrize("given", FORMS)
def test_a_row_s_form_is_the_config_s(given: dict[str, Any]) -> None:
    """Its text is the same, whoever gave it and however a table spells it."""
    structured = make_config(rollout={"structured_outputs": given}).rollout.structured_outputs
    assert structured is not None
    empty = dict.fromkeys(("regex", "choice", "grammar", "json_schema", "structural_tag"))
    form = form_of(given, "row 1")
    assert form == structured.form == form_of(json.dumps(given, indent=2), "row 1") == form_of(form, "row 1")
    assert form == form_of(empty | given, "row 1")
    assert structured_of(form) == structured
    assert form_of(given, "row 1") is form_of(dict(given), "row 2"), "one string, however many rows have it"


@given(SCHEMAS)
def test_a_schema_keeps_its_keys_their_order_and_its_nulls(properties: dict[str, Any]) -> None:
    schema = {"type": "object", "properties": {key: {"const": value} for key, value in properties.items()}}
    kept = structured_of(form_of({"json_schema": schema}, "row")).json_schema
    assert json.dumps(kept) == json.dumps(schema)


@pytest.mark.parametrize("given", [None, "", {}])
def test_no_form_is_none(given: Any) -> None:
    assert form_of(given, "row 1") == ""


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"regex": "[0-9"}, r"structured_outputs\.regex: .*Unclosed"),
        ({"json_schema": {"type": "colour"}}, r"structured_outputs\.json_schema: .*Unsupported type"),
        ({"grammar": "root ::= nothing"}, r"structured_outputs\.grammar: .*not defined"),
        ({"grammar": "nothing"}, r"structured_outputs: grammar has no rule"),
        ({"structural_tag": {"format": {"type": "no such"}}}, r"structured_outputs\.structural_tag: "),
        ({"regex": "a", "choice": ["b"]}, "not regex and choice"),
        ({"regexp": "a"}, r"structured_outputs\.regexp: Extra inputs"),
        ({"regex": 7}, r"structured_outputs\.regex: Input should be a valid string"),
        ("[0-9]+", "structured_outputs is not JSON"),
        ("7", "structured_outputs is 7, and not an object"),
        (7, "structured_outputs is a int; give an object"),
        ({"json_schema": {"const": object()}}, "structured_outputs is not JSON: .*not JSON serializable"),
    ],
)
def test_what_is_no_form_is_named_with_its_place(given: Any, said: str) -> None:
    with pytest.raises(DataError, match=rf"^rows\.jsonl:3: .*{said}") as caught:
        form_of(given, "rows.jsonl:3")
    assert "structured_outputs out" in str(caught.value) or "JSON text of one" in str(caught.value)
