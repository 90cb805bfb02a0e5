"""The section of several policies: adapters of their own for the agents of one environment."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from pydantic import Field, model_validator

from vlrl.config.rollout import StructuredOutputs
from vlrl.config.section import Section
from vlrl.errors import ConfigError

if TYPE_CHECKING:
    from vlrl.config.load import Config

NAME = re.compile(r"[a-z][a-z0-9_]*")
"""A policy's name is that of a module, of a folder and of metrics."""
RESERVED = ("default", "weight", "base_layer")
"""Names that the adapters' parameters have already."""
ADAPTER_FOLDER = "adapter"
"""The folder of the adapter, or of a folder for each policy's, in that of a model."""
VISION = ("vision_tower", "projector")


class PolicyConfig(Section):
    """One of several policies: an adapter of its own on the run's one model."""

    agents: list[str] = Field(min_length=1)
    """Agents of the environment that it plays."""
    copies: str | None = None
    """Policy that this one is a frozen copy of: an older self, played and not trained. null: trained."""
    every: int | None = Field(None, ge=1)
    """Steps after which the copy is taken again; null: it stays the model at model.path."""

    structured_outputs: StructuredOutputs | None = None
    """The form of what its agents say; null: that of the row, or rollout.structured_outputs."""

    @model_validator(mode="after")
    def _every_is_read(self) -> PolicyConfig:
        if self.copies is None and self.every is not None:
            raise ValueError(f"every={self.every} has no effect without copies; set copies, or leave it out")
        return self


def policy_of_agent(config: Config) -> Mapping[str, str]:
    """Each agent's policy, in the order of the section; empty where one policy plays everybody."""
    return {agent: name for name, policy in config.policies.items() for agent in policy.agents}


def number_of_agent(config: Config) -> Mapping[str, int]:
    """The number of each agent's policy among those of the section; empty without the section."""
    numbers = {name: number for number, name in enumerate(config.policies)}
    return {agent: numbers[name] for agent, name in policy_of_agent(config).items()}


def form_of_agent(config: Config) -> Mapping[str, str]:
    """The form of each agent whose policy has structured_outputs, see `vlrl.model.structured.forms`."""
    forms = {name: _form_of(policy) for name, policy in config.policies.items()}
    return {agent: forms[name] for agent, name in policy_of_agent(config).items() if forms[name]}


def _form_of(policy: PolicyConfig) -> str:
    return "" if policy.structured_outputs is None else policy.structured_outputs.form


def untrained_agents(config: Config) -> frozenset[str]:
    """Agents that a frozen copy plays."""
    return frozenset(
        agent for policy in config.policies.values() if policy.copies is not None for agent in policy.agents
    )


def require_policy(sample_id: str, agent: str, numbers: Mapping[str, int]) -> None:
    """Raise ConfigError for an agent that no policy plays.

    Args:
        sample_id: for the message.
        agent: "" of what is asked nobody in particular.
        numbers: of `number_of_agent`.
    """
    if agent in numbers:
        return
    named = f"agent {agent!r} is played by no policy" if agent else "there is no agent, but one who is asked"
    raise ConfigError(
        f"sample {sample_id!r}: {named}, and policies name {', '.join(numbers)}; name every agent of the "
        "environment in policies.NAME.agents, or remove policies"
    )


def require_one_policy(config: Config, command: str) -> None:
    """Raise ConfigError if a command that knows of one policy is given several."""
    if config.policies:
        raise ConfigError(
            f"`{command}` knows one policy, and the config has policies={', '.join(config.policies)}; remove "
            "the section (policies={}); only `vlrl train` trains and plays several"
        )


def require_place_for_policies(config: Config) -> None:
    """Raise ValueError for a section whose parts contradict each other, or the rest of the config."""
    policies, lora = config.policies, config.lora
    if not policies:
        return
    _require_sound(policies)
    if lora is None or lora.sync != "adapter":
        now = "no lora section" if lora is None else f"lora.sync={lora.sync}"
        raise ValueError(
            f"policies={', '.join(policies)} are adapters on one model, and the config has {now}; set "
            "lora.sync=adapter, or remove policies"
        )
    if vision := [target for target in lora.targets if target in VISION]:
        raise ValueError(
            f"lora.targets={vision[0]} with policies={', '.join(policies)}: the features of an image are "
            "computed once for all policies; leave it out of lora.targets"
        )
    _require_separable(config)


def _require_sound(policies: Mapping[str, PolicyConfig]) -> None:
    owner: dict[str, str] = {}
    for name, policy in policies.items():
        _require_agents(name, policy, owner)
        if policy.copies is None:
            continue
        copied = policies.get(policy.copies)
        if copied is None or copied.copies is not None:
            trained = ", ".join(each for each, of in policies.items() if of.copies is None)
            raise ValueError(
                f"policies.{name}.copies={policy.copies} is no trained policy; there is {trained or 'none'}"
            )
    if all(policy.copies is not None for policy in policies.values()):
        raise ValueError(f"policies={', '.join(policies)}: none is trained; remove copies from one of them")


def _require_agents(name: str, policy: PolicyConfig, owner: dict[str, str]) -> None:
    """Note a policy as the owner of its agents, or raise ValueError for its name or an agent of another."""
    if not NAME.fullmatch(name) or name in RESERVED:
        raise ValueError(
            f"policies.{name}: a policy's name is lower-case letters, digits and _, beginning with a letter, "
            f"and none of {', '.join(RESERVED)}"
        )
    for agent in policy.agents:
        if agent in owner:
            raise ValueError(
                f"policies.{name}.agents and policies.{owner[agent]}.agents both name {agent!r}; an agent is "
                "played by one policy"
            )
        owner[agent] = name


def _require_separable(config: Config) -> None:
    """Raise ValueError for what is computed over the tokens of all policies together."""
    algorithm = config.algorithm
    kl_reward = algorithm.kl_in == "reward"
    together = {
        "preferences": (config.preferences is not None, "null"),
        "algorithm.critic": (algorithm.critic is not None, "null"),
        "algorithm.selections": (bool(algorithm.selections), "[]"),
        "algorithm.kl_adaptive": (algorithm.kl_adaptive is not None, "null"),
        "algorithm.entropy_adaptive": (algorithm.entropy_adaptive is not None, "null"),
        "algorithm.normalize with kl_in=reward": (kl_reward and algorithm.normalize == "batch", "none"),
    }
    for key, (is_set, remedy) in together.items():
        if is_set:
            raise ValueError(
                f"{key} is computed over the tokens of all policies together, and policies="
                f"{', '.join(config.policies)} are trained apart; set {key.partition(' ')[0]}={remedy}, or "
                "remove policies"
            )
