"""rollout.structured_outputs in vLLM's terms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vlrl.config.rollout import StructuredOutputs
from vlrl.errors import ConfigError

ARGUMENTS: Mapping[str, Any] = {"structured_outputs_config": {"backend": "xgrammar"}}
"""Of EngineArgs: the library that the trainer has too, whatever is asked for."""


def structured_fields(structured: StructuredOutputs) -> dict[str, Any]:
    """Fields of vLLM's StructuredOutputsParams."""
    kind, text = structured.kind_and_text
    return {{"json_schema": "json"}.get(kind, kind): text}


def structured_params(structured: StructuredOutputs) -> Any:
    """The part of a request's parameters."""
    from vllm.sampling_params import StructuredOutputsParams

    return StructuredOutputsParams(**structured_fields(structured))


def prepare_structured(engine: Any, structured: StructuredOutputs | None) -> None:
    """Make an engine ready for them, if there are any.

    Grammars are compiled when a request is added and not in a thread beside: requests would join their
    batches when that happens to be done, and the same seed would not give the same run (law 8).

    Raises:
        ConfigError: for what vLLM or xgrammar does not take.
    """
    if structured is None:
        return
    from vllm import SamplingParams
    from vllm.exceptions import VLLMValidationError
    from vllm.v1.structured_output.backend_xgrammar import validate_xgrammar_grammar

    try:
        validate_xgrammar_grammar(SamplingParams(structured_outputs=structured_params(structured)))
    except (ValueError, VLLMValidationError) as error:
        given = next(name for name, value in structured if value is not None)
        reason = " ".join(str(error).split())
        raise ConfigError(f"rollout.structured_outputs.{given}: {reason}; correct it") from error
    manager = engine.engine_core.engine_core.structured_output_manager
    if manager._use_async_grammar_compilation:
        manager._use_async_grammar_compilation = False
