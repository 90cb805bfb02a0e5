"""What a rank chooses for its device: every way of computing that differs between CPUs and GPUs."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import torch

from vlrl.choices import MachineChoice
from vlrl.config import Config
from vlrl.model import attention
from vlrl.model.cpu_matmul import choose_products
from vlrl.model.kernels import spans
from vlrl.model.recurrent.layers import has_state

FUSED = "fused AdamW"
STATE_COST = "transformers measured more than ten times the seconds of the kernels on an H100"
GROUPED_PRODUCTS_FROM = (8, 0)
"""Compute capability of the oldest GPUs whose products of experts torch groups into one kernel."""


@dataclass(frozen=True, slots=True)
class RankChoices:
    """What one rank has chosen.

    Attributes:
        device_type: "cpu" or "cuda".
        attention: of the language model.
        spans: how the vision tower attends.
        all: these and the others, with their reasons.
    """

    device_type: str
    attention: attention.Kind
    spans: spans.SpanKind
    all: tuple[MachineChoice, ...]


def choose_for(model: Any, config: Config, device: torch.device) -> RankChoices:
    """Choose for a loaded model; kernels are tried on the device, on a CPU with its choice of products."""
    trainer = config.trainer
    products = [choose_products()] if device.type == "cpu" else []
    heads = attention.heads_of(model, trainer.sequence_parallel)
    kind, of_language = attention.choose(trainer.attention, device, heads)
    spans_kind, of_vision = spans.choose(model, device)
    found = [
        *(of_language, of_vision, optimizer_choice(config, device.type)),
        *(_experts_choice(model, device), _state_choice(model, device)),
        *products,
    ]
    return RankChoices(device.type, kind, spans_kind, tuple(choice for choice in found if choice is not None))


def fuses_update(config: Config, device_type: str) -> bool:
    """Whether AdamW is a GPU's, one kernel for all parameters; not where the states are on the host."""
    return device_type == "cuda" and config.optim.state == "float32" and not config.trainer.offload_optimizer


def optimizer_choice(config: Config, device_type: str) -> MachineChoice:
    """What updates the weights, and why."""
    if config.optim.name == "muon":
        return MachineChoice.as_wanted("optimizer", "Muon for matrices, AdamW", "optim.name=muon")
    if config.optim.state == "8bit":
        return MachineChoice.as_wanted("optimizer", "bitsandbytes' AdamW", "optim.state=8bit")
    if fuses_update(config, device_type):
        return MachineChoice.as_wanted("optimizer", FUSED, "its states are on the GPU")
    if device_type == "cpu":
        return MachineChoice.as_wanted("optimizer", FUSED, "a CPU's, its bits the same in any slice")
    return MachineChoice(
        "optimizer",
        FUSED,
        "AdamW on the host",
        "trainer.offload_optimizer keeps its states there",
        "12 bytes of states for each trained parameter go through the host's memory in every step",
    )


def _state_choice(model: Any, device: torch.device) -> MachineChoice | None:
    """How layers with a state are computed; None without any, and on a CPU, where there is one way."""
    if device.type != "cuda" or not has_state(model.get_decoder().config):
        return None
    name, wanted = "layers with a state", "flash-linear-attention's kernels"
    if find_spec("fla") is None:
        reason = "flash-linear-attention is not installed"
        return MachineChoice(name, wanted, "torch's operations", reason, STATE_COST)
    return MachineChoice.as_wanted(name, wanted, "installed; untried by vlrl on a GPU")


def _experts_choice(model: Any, device: torch.device) -> MachineChoice | None:
    """How transformers multiplies the experts of a mixture; it says nothing itself. None without experts."""
    config = model.get_decoder().config
    if not (getattr(config, "num_experts", 0) or getattr(config, "num_local_experts", 0)):
        return None
    wanted, used = "one grouped product", str(config._experts_implementation)
    cost = "one product for each expert in place of one for all"
    if used != "grouped_mm":
        return MachineChoice("experts", wanted, used, "transformers has no other way for this model", cost)
    if device.type == "cuda" and torch.cuda.get_device_capability(device) < GROUPED_PRODUCTS_FROM:
        return MachineChoice("experts", wanted, "a loop over experts", "this GPU is older than Ampere", cost)
    return MachineChoice.as_wanted("experts", wanted, "torch's grouped_mm")
