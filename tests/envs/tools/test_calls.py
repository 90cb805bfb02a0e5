"""Calls in a model's text: read strictly, wherever they stand, and no text makes the reader raise."""

import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vlrl.parsing.tool_calls import (
    MAX_CALLS,
    MAX_CHARS,
    MAX_DEPTH,
    CallError,
    ParsedCall,
    parse_calls,
    write_call,
)

GOOD = '<tool_call>\n{"name": "zoom", "arguments": {"box": [0, 0, 50, 50.5]}}\n</tool_call>'

whole = st.integers(-(2**53), 2**53)
texts = st.text(st.characters(exclude_categories=["Cs"]))
values = st.recursive(
    st.none() | st.booleans() | whole | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)


def only(text: str) -> ParsedCall | CallError:
    (found,) = parse_calls(text)
    return found


def kinds(text: str) -> list[str]:
    return [found.kind if isinstance(found, CallError) else found.name for found in parse_calls(text)]


def test_a_call_among_words() -> None:
    text = f"I look closer.\n{GOOD}\nand wait"
    call = only(text)
    assert call == ParsedCall("zoom", {"box": [0, 0, 50, 50.5]}, (15, 15 + len(GOOD)))
    assert isinstance(call, ParsedCall) and [type(x) for x in call.arguments["box"]] == [int, int, int, float]


def test_calls_in_their_order_with_an_error_between() -> None:
    broken = "<tool_call>{'name': 1}</tool_call>"
    text = f"{write_call('a', {})} {broken}{write_call('b', {'x': 1})}"
    assert kinds(text) == ["a", "json", "b"]
    error = parse_calls(text)[1]
    assert text[slice(*error.span)] == broken


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ('<tool_call>{"name": "a", "arguments": {}}', "unclosed"),
        ('{"name": "a", "arguments": {}}</tool_call>', "unopened"),
        ("<tool_call></tool_call>", "json"),
        ("<tool_call>import os</tool_call>", "json"),
        ('<tool_call>{"name": "a", "name": "b", "arguments": {}}</tool_call>', "json"),
        ('<tool_call>{"name": "a", "arguments": {"x": NaN}}</tool_call>', "json"),
        ('<tool_call>{"name": "a", "arguments": {"x": 1e999}}</tool_call>', "json"),
        ('<tool_call>{"name": "a", "arguments": {"x": ' + "9" * 5000 + "}}</tool_call>", "json"),
        ('<tool_call>{"name": "a", "arguments": {"x": "\\ud800"}}</tool_call>', "json"),
        ('<tool_call>{"name": "a", "arguments": {"\\udfff": 1}}</tool_call>', "json"),
        ('<tool_call>{"name": "a", "arguments": {}} {}</tool_call>', "json"),
        ('<tool_call>["a", {}]</tool_call>', "form"),
        ('<tool_call>{"name": "a"}</tool_call>', "form"),
        ('<tool_call>{"name": "a", "arguments": "{}"}</tool_call>', "form"),
        ('<tool_call>{"name": 3, "arguments": {}}</tool_call>', "form"),
        ('<tool_call>{"name": "a", "arguments": {}, "id": 1}</tool_call>', "form"),
        ("<tool_call>" + " " * (MAX_CHARS + 1) + "</tool_call>", "too_long"),
        ("<tool_call>" + "[" * 15_000 + "</tool_call>", "json"),
    ],
)
def test_an_attempt_that_is_no_call(text: str, kind: str) -> None:
    error = only(text)
    assert isinstance(error, CallError) and error.kind == kind
    assert 0 < len(error.message) < 300


def test_a_tag_in_a_call_ends_it() -> None:
    assert kinds(f"<tool_call>{GOOD}") == ["unclosed", "zoom"]
    assert kinds('<tool_call>{"name": "a", "arguments": {"x": "</tool_call>"}}</tool_call>') == [
        "json",
        "unopened",
    ]


def test_depth_counts_the_calls_own_object_and_its_arguments() -> None:
    def nested(depth: int) -> str:
        return write_call("a", {"x": json.loads("[" * depth + "]" * depth)})

    assert kinds(nested(MAX_DEPTH - 2)) == ["a"]
    assert kinds(nested(MAX_DEPTH - 1)) == ["json"]


@pytest.mark.parametrize("unit", [write_call("a", {}), "<tool_call>", "</tool_call>"])
def test_the_number_of_calls_is_bounded(unit: str) -> None:
    assert len(parse_calls(unit * MAX_CALLS)) == MAX_CALLS
    assert "too_many" not in kinds(unit * MAX_CALLS)
    many = unit * (3 * MAX_CALLS)
    assert len(parse_calls(many)) == MAX_CALLS + 1
    assert kinds(many)[-1] == "too_many"
    assert parse_calls(many)[-1].span == (MAX_CALLS * len(unit), len(many))


def test_an_argument_may_say_that_thinking_ends() -> None:
    text = write_call("say", {"words": "a </think> b"})
    (call,) = parse_calls(text)
    assert isinstance(call, ParsedCall)
    assert call.arguments == {"words": "a </think> b"}
    assert call.span == (0, len(text))


def test_thinking_calls_nothing() -> None:
    assert kinds(f"<think>{GOOD}</think>{write_call('b', {})}") == ["b"]
    assert kinds(f"perhaps {GOOD}</think>{write_call('b', {})}") == ["b"]
    assert kinds(f" <think>{GOOD}") == []


@given(st.text(min_size=1), st.dictionaries(texts, values, max_size=3), texts)
def test_what_is_written_is_read(name: str, arguments: dict[str, Any], words: str) -> None:
    name = name.encode(errors="ignore").decode()
    written = write_call(name, arguments)
    prefix = words.replace("<", "")
    call = only(prefix + written)
    assert call == ParsedCall(name, arguments, (len(prefix), len(prefix) + len(written)))


@st.composite
def damaged(draw: st.DrawFn) -> str:
    """Calls and their pieces, with characters cut out, doubled and put in."""
    pieces = [
        GOOD,
        "<tool_call>",
        "</tool_call>",
        "<think>",
        "</think>",
        '"',
        "{",
        "}",
        "[",
        "\\",
        "\x00",
        "é",
    ]
    text = "".join(draw(st.lists(st.sampled_from(pieces) | st.text(max_size=5), max_size=12)))
    for _ in range(draw(st.integers(0, 6))):
        start = draw(st.integers(0, len(text)))
        end = draw(st.integers(start, min(len(text), start + 8)))
        text = text[:start] + draw(st.text(max_size=3)) + text[start if draw(st.booleans()) else end :]
    return text


@settings(max_examples=500, deadline=None)
@given(damaged())
def test_no_text_makes_it_raise_and_spans_are_the_calls(text: str) -> None:
    end = 0
    for found in parse_calls(text):
        assert end <= found.span[0] < found.span[1] <= len(text)
        end = found.span[1]
        said = text[slice(*found.span)]
        if isinstance(found, ParsedCall) or found.kind in ("json", "form", "too_long"):
            assert said.startswith("<tool_call>") and said.endswith("</tool_call>")
            assert len(re.findall("</?tool_call>", said)) == 2
        if isinstance(found, ParsedCall):
            assert parse_calls(said) == [ParsedCall(found.name, found.arguments, (0, len(said)))]
            assert parse_calls(write_call(found.name, found.arguments))[0].arguments == found.arguments
        else:
            found.message.encode()  # it goes to the model


def test_a_string_may_hold_the_tags_if_the_call_is_written_for_it() -> None:
    said = "a <tool_call> b </tool_call> c </think> d"
    call = only(write_call("a", {"x": [said]}))
    assert isinstance(call, ParsedCall) and call.arguments == {"x": [said]}
