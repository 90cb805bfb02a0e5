"""Forms of completions in vLLM's terms."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from vlrl.config import Config
from vlrl.config.rollout import StructuredOutputs
from vlrl.errors import ConfigError, DataError
from vlrl.model.structured.forms import NUM_KNOWN, REMEDY, structured_of

ARGUMENTS: Mapping[str, Any] = {"structured_outputs_config": {"backend": "xgrammar"}}
"""Of EngineArgs: the library that the trainer has too, whatever is asked for."""


def structured_fields(form: str) -> dict[str, Any]:
    """Fields of vLLM's StructuredOutputsParams."""
    kind, text = structured_of(form).kind_and_text
    return {{"json_schema": "json"}.get(kind, kind): text}


def structured_params(form: str, sample_id: str) -> Any:
    """The part of a request's parameters; None without a form.

    Raises:
        DataError: naming the sample, for a form that vLLM does not take: of JSON schemas it takes less than
            xgrammar.
    """
    if not form:
        return None
    if problem := _refusal(form):
        key = f"structured_outputs.{structured_of(form).given}"
        raise DataError(f"sample {sample_id!r}: {key}: {problem}; {REMEDY}")
    return _params(form)


def _params(form: str) -> Any:
    from vllm.sampling_params import StructuredOutputsParams

    return StructuredOutputsParams(**structured_fields(form))


def prepare_structured(engine: Any, config: Config) -> None:
    """Make an engine ready for requests of any form.

    Grammars are compiled when a request is added and not in a thread beside: requests would join their
    batches when that happens to be done, and the same seed would not give the same run (law 8).

    Raises:
        ConfigError: for a form in the config that vLLM or xgrammar does not take.
    """
    for section, structured in _in_config(config).items():
        if problem := _refusal(structured.form):
            raise ConfigError(f"{section}.{structured.given}: {problem}; correct it")
    manager = engine.engine_core.engine_core.structured_output_manager
    if manager._use_async_grammar_compilation:
        manager._use_async_grammar_compilation = False


def _in_config(config: Config) -> dict[str, StructuredOutputs]:
    """What the config says of forms, by section."""
    found = {"rollout.structured_outputs": config.rollout.structured_outputs}
    for name, policy in config.policies.items():
        found[f"policies.{name}.structured_outputs"] = policy.structured_outputs
    return {section: structured for section, structured in found.items() if structured is not None}


@lru_cache(NUM_KNOWN)
def _refusal(form: str) -> str:
    """Why vLLM does not take a form; "" if it does."""
    from vllm import SamplingParams
    from vllm.exceptions import VLLMValidationError
    from vllm.v1.structured_output.backend_xgrammar import validate_xgrammar_grammar

    try:
        validate_xgrammar_grammar(SamplingParams(structured_outputs=_params(form)))
    except (ValueError, VLLMValidationError) as error:
        return " ".join(str(error).split())
    return ""
