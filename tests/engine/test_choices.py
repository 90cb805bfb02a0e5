"""What an engine chose is read from vLLM's config as it is when the engine runs.

vLLM is imported in the tests: every process that collects them would import it otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from vlrl.engine.choices import engine_choices
from vlrl.engine.cpu.lora_products import use_plain_products


class Layer:
    """An attention's layer, as vLLM keeps it in its config."""

    def __init__(self, backend: type[Any]) -> None:
        self.backend = backend

    def get_attn_backend(self) -> type[Any]:
        return self.backend


def vllm_config(
    device: str,
    mode: str = "FULL_AND_PIECEWISE",
    *,
    eager: bool = False,
    beside: bool = True,
    v2: bool = True,
    backends: Sequence[type[Any]] = (),
) -> Any:
    from vllm.config.compilation import CUDAGraphMode

    layers = {f"layers.{number}": Layer(backend) for number, backend in enumerate(backends)}
    return SimpleNamespace(
        device_config=SimpleNamespace(device_type=device),
        compilation_config=SimpleNamespace(
            cudagraph_mode=CUDAGraphMode[mode], static_forward_context={**layers, "experts": object()}
        ),
        model_config=SimpleNamespace(enforce_eager=eager, dtype="torch.float32"),
        scheduler_config=SimpleNamespace(async_scheduling=beside),
        use_v2_model_runner=v2,
    )


def test_graphs_and_scheduling_are_said_on_a_gpu() -> None:
    graphs, steps, _ = engine_choices(vllm_config("cuda"), "")
    assert (graphs.used, graphs.is_slower) == ("CUDA graphs", False)
    assert not steps.is_slower
    assert engine_choices(vllm_config("cpu", "NONE", eager=True), "") == []


@pytest.mark.parametrize(
    ("eager", "reason"), [(True, "enforce_eager=true"), (False, "vLLM has none for this model")]
)
def test_an_engine_without_graphs_says_whose_choice_it_was(eager: bool, reason: str) -> None:
    """vLLM takes the mode away where an attention cannot be captured, and logs it below our level."""
    found = engine_choices(vllm_config("cuda", "NONE", eager=eager, beside=False), "")
    graphs, steps, _ = found
    assert graphs.is_slower and reason in graphs.reason and "20 ms" in graphs.cost
    assert steps.is_slower and "no batch may be in flight" in steps.reason


def test_the_deprecated_runner_and_slower_kernels_are_said() -> None:
    from vllm.v1.attention.backends.flash_attn import FlashAttentionBackend
    from vllm.v1.attention.backends.triton_attn import TritonAttentionBackend

    [*_, runner, attention] = engine_choices(vllm_config("cuda", backends=[FlashAttentionBackend]), "")
    assert (runner.used, attention.used) == ("V2", "FLASH_ATTN")
    assert not runner.is_slower and not attention.is_slower
    backends = [FlashAttentionBackend, TritonAttentionBackend]
    [*_, runner, attention] = engine_choices(vllm_config("cuda", v2=False, backends=backends), "")
    assert runner.is_slower and "VLLM_USE_V2_MODEL_RUNNER" in runner.reason
    assert attention.used == "FLASH_ATTN, TRITON_ATTN"
    assert attention.is_slower and "torch.float32" in attention.reason


def test_products_of_adapters_that_vllm_has_renamed_are_said() -> None:
    class PunicaWrapperCPU:
        add_lora_linear: Any = None

    class PunicaWrapperNew:
        pass

    assert use_plain_products([PunicaWrapperCPU()]) == ""
    unknown = use_plain_products([PunicaWrapperCPU(), PunicaWrapperNew()])
    assert unknown == "PunicaWrapperNew"
    [choice] = engine_choices(vllm_config("cpu", "NONE"), unknown)
    assert choice.is_slower and "PunicaWrapperNew" in choice.reason
