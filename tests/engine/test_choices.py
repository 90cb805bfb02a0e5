"""What an engine chose is read from vLLM's config as it is when the engine runs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from vllm.config.compilation import CUDAGraphMode

from vlrl.engine.choices import engine_choices
from vlrl.engine.lora_cpu import use_plain_products


def vllm_config(device: str, mode: CUDAGraphMode, *, eager: bool = False, beside: bool = True) -> Any:
    return SimpleNamespace(
        device_config=SimpleNamespace(device_type=device),
        compilation_config=SimpleNamespace(cudagraph_mode=mode),
        model_config=SimpleNamespace(enforce_eager=eager),
        scheduler_config=SimpleNamespace(async_scheduling=beside),
    )


def test_graphs_and_scheduling_are_said_on_a_gpu() -> None:
    graphs, steps = engine_choices(vllm_config("cuda", CUDAGraphMode.FULL_AND_PIECEWISE), "")
    assert (graphs.used, graphs.is_slower) == ("CUDA graphs", False)
    assert not steps.is_slower
    assert engine_choices(vllm_config("cpu", CUDAGraphMode.NONE, eager=True), "") == []


@pytest.mark.parametrize(
    ("eager", "reason"), [(True, "enforce_eager=true"), (False, "vLLM has none for this model")]
)
def test_an_engine_without_graphs_says_whose_choice_it_was(eager: bool, reason: str) -> None:
    """vLLM takes the mode away where an attention cannot be captured, and logs it below our level."""
    graphs, steps = engine_choices(vllm_config("cuda", CUDAGraphMode.NONE, eager=eager, beside=False), "")
    assert graphs.is_slower and reason in graphs.reason and "20 ms" in graphs.cost
    assert steps.is_slower and "no batch may be in flight" in steps.reason


def test_products_of_adapters_that_vllm_has_renamed_are_said() -> None:
    class PunicaWrapperCPU:
        add_lora_linear: Any = None

    class PunicaWrapperNew:
        pass

    assert use_plain_products([PunicaWrapperCPU()]) == ""
    unknown = use_plain_products([PunicaWrapperCPU(), PunicaWrapperNew()])
    assert unknown == "PunicaWrapperNew"
    [choice] = engine_choices(vllm_config("cpu", CUDAGraphMode.NONE), unknown)
    assert choice.is_slower and "PunicaWrapperNew" in choice.reason
