"""The parts of a vision-language model, found by parameter names, and freezing them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Any, Literal, TypeAlias, get_args

from vlrl.errors import ConfigError

Part: TypeAlias = Literal["vision_tower", "projector", "embeddings", "language_layers", "head", "audio_tower"]

# In transformers' names: Qwen-VL's merger lies inside its tower, the other families' projectors beside it.
# MiniCPM-V's vit_merger is a layer of its tower.
_PARTS: tuple[tuple[Part, re.Pattern[str]], ...] = (
    (
        "projector",
        re.compile(
            r"(^|\.)(merger|deepstack_merger_list|multi_modal_projector|connector|image_newline|embed_vision)"
            r"(\.|$)"
        ),
    ),
    ("vision_tower", re.compile(r"(^|\.)(visual|vision_tower|vision_model)\.")),
    ("audio_tower", re.compile(r"(^|\.)(audio_tower|embed_audio)\.")),
    ("embeddings", re.compile(r"(^|\.)(embed_tokens|embed_tokens_per_layer)\.")),
    ("head", re.compile(r"(^|\.)(lm_head|score)\.")),
)
VISION_PARTS: tuple[Part, ...] = ("vision_tower", "projector")


def part_of(name: str) -> Part:
    """The part that a parameter or module belongs to, by its name; a tied head is with the embeddings."""
    for part, pattern in _PARTS:
        if pattern.search(name):
            return part
    return "language_layers"


def matches(name: str, pattern: str) -> bool:
    """Whether a pattern names a parameter or module: a part, or an fnmatch pattern of the whole name."""
    if pattern in get_args(Part):
        return part_of(name) == pattern
    return fnmatchcase(name, pattern)


def hidden_matrices(model: Any) -> list[Any]:
    """Weights of the linear layers but the head: what optim.name=muon takes for matrices.

    An embedding's rows are no linear map, and fused experts no matrix.
    """
    from torch import nn

    linear = ((n, m) for n, m in model.named_modules() if isinstance(m, nn.Linear))
    return [m.weight for name, m in linear if part_of(f"{name}.") not in ("embeddings", "head")]


def freeze(model: Any, patterns: Sequence[str]) -> None:
    """Take what the patterns name out of training: no gradient, no optimizer state.

    An audio tower (Gemma 4's, Qwen2.5-Omni's) always is: it runs without gradient.

    Raises:
        ConfigError: if a pattern names nothing.
    """
    named = list(model.named_parameters())
    for name, parameter in named:
        if part_of(name) == "audio_tower":
            parameter.requires_grad_(False)
    for pattern in patterns:
        found = [parameter for name, parameter in named if matches(name, pattern)]
        if not found:
            raise ConfigError(
                f"model.freeze: {pattern!r} names no parameter; parts are {present(n for n, _ in named)}, "
                f"and patterns match whole names such as {named[0][0]!r}"
            )
        for parameter in found:
            parameter.requires_grad_(False)


def present(names: Iterable[str]) -> str:
    """The parts that have parameters, in words."""
    return ", ".join(sorted({part_of(name) for name in names}))


def is_frozen(model: Any, chosen: Callable[[str], bool]) -> bool:
    """Whether no parameter of a chosen name is trained."""
    return not any(p.requires_grad for name, p in model.named_parameters() if chosen(name))


def recomputes(choice: bool | str, side: Literal["vision", "language"]) -> bool:
    """Whether trainer.gradient_checkpointing has this side of the model recompute its activations."""
    return choice is True or choice == side


def vision_is_frozen(model: Any) -> bool:
    """Whether tower and projector are, so that an image's features never change."""
    return is_frozen(model, lambda name: part_of(name) in VISION_PARTS)
