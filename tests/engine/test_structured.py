"""An engine is made ready for structured outputs, or its start says why not."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from builders import make_config

from vlrl.config.rollout import StructuredOutputs
from vlrl.engine.external.requests import body_of
from vlrl.engine.requests import EngineRequest, sampling_params
from vlrl.engine.structured import prepare_structured
from vlrl.errors import ConfigError, DataError
from vlrl.types import Sampling


def engine_of(manager: Any) -> Any:
    core = SimpleNamespace(engine_core=SimpleNamespace(structured_output_manager=manager))
    return SimpleNamespace(engine_core=core)


def asked(form: str) -> EngineRequest:
    ids = np.zeros(1, np.int64)
    return EngineRequest("n", "s", ids, ids, (), Sampling(1.0, 4, 0), form=form)


def test_grammars_are_compiled_in_the_engines_own_thread() -> None:
    """Requests would else join their batches by the clock (law 8)."""
    manager = SimpleNamespace(_use_async_grammar_compilation=True)
    prepare_structured(engine_of(manager), make_config())  # rows and environments may have forms
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
    with pytest.raises(ConfigError, match=rf"^rollout\.structured_outputs\.{key}: .*; correct it"):
        prepare_structured(engine_of(manager), make_config(rollout={"structured_outputs": given}))
    policies = {"one": {"agents": ["a"], "structured_outputs": given}}
    config = make_config(lora={"sync": "adapter"}, policies=policies)
    with pytest.raises(ConfigError, match=rf"^policies\.one\.structured_outputs\.{key}: .*; correct it"):
        prepare_structured(engine_of(manager), config)


def test_a_row_s_schema_that_vllm_does_not_take_is_named() -> None:
    """xgrammar ignores the keyword, so only the engine knows."""
    form = StructuredOutputs(json_schema={"type": "integer", "multipleOf": 3}).form
    with pytest.raises(DataError, match=r"^sample 's': structured_outputs\.json_schema: .*; correct"):
        sampling_params(asked(form), [0])


def test_a_request_is_held_to_its_own_form() -> None:
    digits, word = StructuredOutputs(regex="[0-9]").form, StructuredOutputs(choice=["a"]).form
    assert sampling_params(asked(digits), [0]).structured_outputs.regex == "[0-9]"
    assert sampling_params(asked(word), [0]).structured_outputs.grammar == 'root ::= "a"'
    assert sampling_params(asked(""), [0]).structured_outputs is None
    assert body_of(asked(digits), {}, [0])["sampling_params"]["structured_outputs"] == {"regex": "[0-9]"}
    assert "structured_outputs" not in body_of(asked(""), {}, [0])["sampling_params"]
