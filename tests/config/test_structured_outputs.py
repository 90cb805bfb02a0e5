"""rollout.structured_outputs: one of five, and what is none of them."""

from __future__ import annotations

from typing import Any

import pytest
from builders import make_config

from vlrl.engine.arguments import engine_arguments
from vlrl.errors import ConfigError


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({}, "give one of json_schema, regex, choice, grammar and structural_tag, not none"),
        ({"regex": "a", "choice": ["b"]}, "not regex and choice"),
        ({"choice": []}, "structured_outputs.choice"),
        ({"choice": ["a", ""]}, "choice has an empty text"),
        ({"grammar": "left or right"}, r"write GBNF, such as: root ::="),
        ({"structural_tag": {"type": "structural_tag"}}, "structural_tag has no format"),
        ({"json": {}}, r"did you mean 'rollout\.structured_outputs\.json_schema'"),
    ],
)
def test_what_is_none_of_the_five_is_refused(given: dict[str, Any], named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        make_config(rollout={"structured_outputs": given})


def test_choices_are_a_grammar_of_literals() -> None:
    section = make_config(rollout={"structured_outputs": {"choice": ['a "b"', "ü\\"]}}).rollout
    assert section.structured_outputs is not None
    assert section.structured_outputs.kind_and_text == ("grammar", r'root ::= "a \"b\"" | "ü\\"')


def test_the_engine_has_the_trainers_library_and_no_other_can_be_given() -> None:
    """Whatever the config says: rows may have forms."""
    arguments = engine_arguments(make_config("m"), [], {}, on_gpu=True)
    assert arguments["structured_outputs_config"] == {"backend": "xgrammar"}
    config = make_config("m", generator={"engine": {"structured_outputs_config": {"backend": "guidance"}}})
    with pytest.raises(ConfigError, match=r"give rollout\.structured_outputs instead"):
        engine_arguments(config, [], {}, on_gpu=True)
