"""The sections of the config tree that say what a trainer rank holds, trains and records."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import Field, model_validator

from vlrl.config.options import Section

if TYPE_CHECKING:
    from vlrl.config.load import Config


class LoraConfig(Section):
    """Low-rank adapters, trained in the model's place; the saved model gets them merged."""

    rank: int = Field(16, ge=1)
    """Inner width of an adapter."""
    alpha: float = Field(32.0, gt=0)
    """An adapter is scaled by alpha / rank."""
    rslora: bool = False
    """Scale it by alpha / √rank, with which adapters of a large rank learn as much as small ones."""
    dora: bool = False
    """Train each row's length apart from its direction (DoRA), for more memory and time; engines get merged
    weights."""
    base: Literal["dtype", "nf4"] = "dtype"
    """How the frozen weights below adapters are kept: in model.dtype, or rounded to 4 bits (QLoRA, with
    bitsandbytes: pip install 'vlrl[8bit]'). Engines and saved models get these, with adapters merged."""
    targets: list[str] = Field(["language_layers"], min_length=1)
    """Linear layers that get an adapter: language_layers, vision_tower, projector, or fnmatch patterns of
    names."""
    sync: Literal["merged", "adapter"] = "merged"
    """What engines are sent: the whole model with adapters merged, or the adapters alone, for vLLM's LoRA."""


def rounds_base(config: Config) -> bool:
    """Whether the frozen weights below adapters are others than those of model.path."""
    return config.lora is not None and config.lora.base == "nf4"


def require_sound_training(config: Config) -> None:
    """Raise ValueError for options of what is trained, and how, that contradict each other."""
    for require in (_require_nothing_frozen, _require_mergeable, _require_states_in_memory):
        require(config)


def _require_states_in_memory(config: Config) -> None:
    """Raise ValueError for Muon whose states are to lie on a disk, which has never been tried."""
    if config.optim.name == "muon" and config.trainer.offload_dir is not None:
        raise ValueError(
            f"optim.name=muon with trainer.offload_dir={config.trainer.offload_dir}: only AdamW's states "
            "have been swapped to a disk and resumed; remove trainer.offload_dir, which offloads to host "
            "memory, or set optim.name=adamw"
        )


def _require_mergeable(config: Config) -> None:
    """Raise ValueError for kinds of adapters that engines can only get merged, where they are not."""
    if (lora := config.lora) is None:
        return
    merged_alone = {
        "lora.dora": (lora.dora, "vLLM's LoRA does not know DoRA", "lora.dora=false"),
        "lora.base=nf4": (
            lora.base == "nf4",
            "they would apply them to the weights of model.path, which are not rounded",
            "lora.base=dtype",
        ),
    }
    for option, (is_set, reason, without) in merged_alone.items():
        if is_set and config.policies:
            raise ValueError(
                f"{option} with policies={', '.join(config.policies)}: engines apply several policies' "
                f"adapters themselves, and {reason}; set {without}"
            )
        if is_set and lora.sync == "adapter":
            raise ValueError(
                f"{option} with lora.sync=adapter: engines apply adapters themselves, and {reason}; set "
                f"lora.sync=merged, or {without}"
            )
    if lora.base == "nf4" and lora.dora:
        raise ValueError(
            "lora.dora with lora.base=nf4: peft's DoRA reads the weight's rows, and there are bits in 4; set "
            "lora.dora=false, or lora.base=dtype"
        )
    if lora.base == "nf4" and config.trainer.offload_dir is not None:
        raise ValueError(
            f"lora.base=nf4 with trainer.offload_dir={config.trainer.offload_dir}: its buffers are planned "
            "for whole layers and have not been tried with bits; remove trainer.offload_dir, which offloads "
            "to host memory, or set lora.base=dtype"
        )


def _require_nothing_frozen(config: Config) -> None:
    """Raise ValueError for two ways to say what is trained."""
    if config.lora is not None and config.model.freeze:
        raise ValueError(
            f"lora trains adapters alone, so model.freeze={config.model.freeze} has no effect with it; "
            "leave a part out of lora.targets instead"
        )


class VisionCacheConfig(Section):
    """Features of images, kept where tower and projector are both frozen (model.freeze)."""

    gib: float = Field(1.0, ge=0)
    """Host memory of each rank for features; the least recently used are removed first. 0 keeps none."""
    dir: Path | None = None
    """Folder that keeps features between steps and runs, shared by all ranks and never pruned; null: none."""


class ProfileConfig(Section):
    """Traces of optimizer steps, written to RUN/profile by every rank."""

    steps: list[Annotated[int, Field(ge=0)]] = Field(default_factory=list)
    """Steps to profile, counted from the start of the process; the first one is not typical."""


class OptimConfig(Section):
    """The optimizer and its schedule."""

    name: Literal["adamw", "muon"] = "adamw"
    """muon moves the weights of linear layers along orthogonal matrices, all else by AdamW: one moment a
    weight in place of two; lr and weight_decay mean the same for both."""
    momentum: float = Field(0.95, ge=0, lt=1)
    """Muon's decay rate."""
    lr: float = Field(1e-6, gt=0)
    """Peak learning rate."""
    schedule: Literal["constant", "linear", "cosine"] = "constant"
    """Course of the rate after warm-up, down to min_lr_ratio · lr at the last step."""
    min_lr_ratio: float = Field(0.0, ge=0, le=1)
    """Final rate as a share of the peak."""
    warmup_steps: int = Field(0, ge=0)
    """Steps of linear rise from lr/warmup_steps."""
    betas: tuple[float, float] = (0.9, 0.95)
    """Adam's decay rates."""
    eps: float = Field(1e-8, gt=0)
    """Adam's denominator floor."""
    weight_decay: float = Field(0.0, ge=0)
    """Decoupled decay."""
    state: Literal["float32", "8bit"] = "float32"
    """Dtype of both moments. 8bit keeps them by blocks in a quarter of the memory, with bitsandbytes'
    AdamW (pip install 'vlrl[8bit]'); the float32 copy of the weights stays."""
    max_grad_norm: float = Field(1.0, gt=0)
    """Global norm that gradients are clipped to."""

    @model_validator(mode="after")
    def _muon_in_float32(self) -> Self:
        if self.name == "muon" and self.state == "8bit":
            raise ValueError(
                "optim.state=8bit with optim.name=muon: bitsandbytes has AdamW in 8 bit, and no Muon; set "
                "optim.state=float32, or optim.name=adamw"
            )
        return self
