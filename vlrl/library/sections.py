"""A config's sections as keyword arguments, so that editors complete them and type checkers know them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias, TypedDict, TypeVar

from vlrl.config.algorithm import AlgorithmConfig
from vlrl.config.asynchronous import AsyncConfig, BatchConfig
from vlrl.config.data import MediaConfig, ProcessorConfig
from vlrl.config.engine import GeneratorConfig, WeightsConfig
from vlrl.config.learning.policies import PolicyConfig
from vlrl.config.learning.preferences import PreferencesConfig
from vlrl.config.memory import LoraConfig, OptimConfig, ProfileConfig, VisionCacheConfig
from vlrl.config.options import (
    CheckpointConfig,
    EvalConfig,
    LoggingConfig,
    ParityConfig,
    RayConfig,
    RolloutConfig,
    RunConfig,
    ScoringConfig,
    SftConfig,
    TrainerConfig,
)
from vlrl.config.rollout import EnvConfig, EpisodeConfig
from vlrl.config.section import Section

S = TypeVar("S", bound=Section)
Given: TypeAlias = S | Mapping[str, Any]
"""A section's keys as a mapping, or as the section's class."""


class Sections(TypedDict, total=False):
    """All of a config but model, rewards and rows; docs/reference/options.md has each section's keys."""

    run: Given[RunConfig]
    data: Mapping[str, Any]
    num_steps: int
    processor: Given[ProcessorConfig]
    media: Given[MediaConfig]
    scoring: Given[ScoringConfig]
    rollout: Given[RolloutConfig]
    env: Given[EnvConfig]
    episodes: Given[EpisodeConfig]
    batch: Given[BatchConfig]
    asynchronous: Given[AsyncConfig]
    algorithm: str | Given[AlgorithmConfig]
    optim: Given[OptimConfig]
    trainer: Given[TrainerConfig]
    lora: Given[LoraConfig]
    policies: Mapping[str, Given[PolicyConfig]]
    placement: Literal["auto", "colocated", "split"]
    vision_cache: Given[VisionCacheConfig]
    profile: Given[ProfileConfig]
    generator: Given[GeneratorConfig]
    weights: Given[WeightsConfig]
    parity: Given[ParityConfig]
    eval: Given[EvalConfig]
    checkpoint: Given[CheckpointConfig]
    logging: Given[LoggingConfig]
    ray: Given[RayConfig]
    sft: Given[SftConfig]
    preferences: Given[PreferencesConfig]
