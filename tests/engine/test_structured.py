"""An engine is made ready for structured outputs, or its start says why not."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from vlrl.config.rollout import StructuredOutputs
from vlrl.engine.structured import prepare_structured
from vlrl.errors import ConfigError


def engine_of(manager: Any) -> Any:
    core = SimpleNamespace(engine_core=SimpleNamespace(structured_output_manager=manager))
    return SimpleNamespace(engine_core=core)


def test_grammars_are_compiled_in_the_engines_own_thread() -> None:
    """Requests would else join their batches by the clock (law 8)."""
    manager = SimpleNamespace(_use_async_grammar_compilation=True)
    prepare_structured(engine_of(manager), StructuredOutputs(regex="[0-9]+"))
    assert manager._use_async_grammar_compilation is False


@pytest.mark.parametrize(
    ("given", "key"),
    [
        ({"regex": "[0-9"}, "regex"),
        ({"json_schema": {"type": "integer", "multipleOf": 3}}, "json_schema"),
        ({"grammar": "root ::= nothing"}, "grammar"),
        ({"structural_tag": {"format": {"type": "no such format"}}}, "structural_tag"),
    ],
)
def test_what_xgrammar_does_not_take_is_named(given: dict[str, Any], key: str) -> None:
    manager = SimpleNamespace(_use_async_grammar_compilation=True)
    with pytest.raises(ConfigError, match=rf"rollout\.structured_outputs\.{key}: .*; correct it"):
        prepare_structured(engine_of(manager), StructuredOutputs(**given))
