"""The section of a critic, whose values turn rewards into advantages, and what it cannot be combined with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from vlrl.config.paths import model_place
from vlrl.config.section import Section

if TYPE_CHECKING:
    from vlrl.config.algorithm import AlgorithmConfig
    from vlrl.config.load import Config


class CriticConfig(Section):
    """A second trained model on the trainer's ranks, with a scalar head: PPO's critic (arXiv 1707.06347).

    It is trained as the policy is: the same packed trees, model.freeze and lora, and of `optim` all but
    the learning rate and its schedule.
    """

    path: Annotated[str | None, AfterValidator(lambda path: None if path is None else model_place(path))] = (
        None
    )
    """As model.path; null begins at the policy's own model. It must read the policy's tokens and images."""
    level: Literal["token", "turn"] = "token"
    """What a step of the decision process is. turn: one value before each turn, and all tokens of a turn have
    the same advantage."""
    lr: float = Field(1e-5, gt=0)
    """Learning rate, constant."""
    num_updates: int = Field(2, ge=1)
    """Optimizer steps of the critic for each of the policy's, all on the same tokens."""
    clip: float | None = Field(0.2, gt=0)
    """ε, in units of the reward: how far a step's updates may move a value; null: no bound."""
    warmup_steps: int = Field(0, ge=0)
    """First steps of a run in which only the critic learns."""

    @model_validator(mode="after")
    def _clip_is_reached(self) -> CriticConfig:
        if self.num_updates == 1 and self.clip is not None:
            raise ValueError(
                f"clip={self.clip:g} has no effect with num_updates=1: the only update of a step starts "
                "from the values that clip compares with; set clip=null, or num_updates=2 or more"
            )
        return self


def require_fitting(algorithm: AlgorithmConfig, reads_values: bool) -> None:
    """Raise ValueError for keys of `algorithm` that a critic, or its absence, leaves without a meaning.

    Args:
        algorithm: the section.
        reads_values: whether the function that credit names takes a critic's values.
    """
    credit, critic = algorithm.credit.name, algorithm.critic
    if critic is None:
        if reads_values:
            raise ValueError(
                f"credit={credit} needs the values of a critic; set critic={{}} (or algorithm=ppo), or "
                "another credit"
            )
        return
    if not reads_values:
        raise ValueError(
            f"critic has no effect with credit={credit}, which does not use its values; set credit=gae, or "
            "critic=null"
        )
    if algorithm.masks:
        raise ValueError(
            f"masks={algorithm.masks} with critic: masking a turn would remove its reward, which belongs to "
            "the returns of earlier tokens; leave masks out, or set critic=null and another credit"
        )
    if algorithm.normalize == "batch" and algorithm.num_minibatches > 1:
        raise ValueError(
            f"num_minibatches={algorithm.num_minibatches} with critic and normalize=batch: the trainer "
            "computes advantages one minibatch at a time, so each minibatch would be normalised by itself; "
            "set num_minibatches=1, or normalize=none"
        )


def require_place_for_critic(config: Config) -> None:
    """Raise ValueError for what a critic does not go with in the rest of the config."""
    critic, size = config.algorithm.critic, config.rollout.group_size
    if critic is None:
        return
    from vlrl.types import SMALLEST_GROUP  # here: it brings numpy along

    if size < SMALLEST_GROUP and any(chosen.name == "zero_variance" for chosen in config.batch.filters):
        raise ValueError(
            f"batch.filters=zero_variance with rollout.group_size={size} drops every group; leave the filter "
            "out, or set rollout.group_size=2 or more"
        )
    if critic.warmup_steps >= config.num_steps:
        raise ValueError(
            f"algorithm.critic.warmup_steps={critic.warmup_steps} with num_steps={config.num_steps}: the "
            "policy would not be trained at all; lower warmup_steps, or raise num_steps"
        )
    if config.trainer.offload_dir is not None:
        raise ValueError(
            f"trainer.offload_dir={config.trainer.offload_dir} with algorithm.critic: checkpoints of two "
            "optimizers that are offloaded to disk are not supported; leave offload_dir out, which offloads "
            "to host memory"
        )
