"""The options of `vlrl.packing.pack`, and a run's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from vlrl.config import Config
from vlrl.config.algorithm import AlgorithmConfig
from vlrl.config.learning.policies import number_of_agent

Aggregation = Literal["token", "sequence", "constant", "group"]


@dataclass(frozen=True, slots=True)
class PackOptions:
    """How groups are laid out for a trainer.

    Attributes:
        num_ranks: of the trainer; each gets the same number of micro-batches.
        max_tokens: of a micro-batch; a tree of more is split and its shared tokens repeated, and only a
            single ledger may exceed it.
        max_completion_tokens: most of an action; Dr. GRPO's constant.
        aggregation: the averaging rule, see `token_weights`. "group" is for losses of whole groups, each of
            which is then in one micro-batch.
        normalize: "batch" gives a step's advantages mean 0 and deviation 1 (`vlrl.packing.minibatch`); with
            KL in the reward or a critic the trainer does so, when it knows these.
        keep_zero_advantage: train groups whose advantages are all zero. They add nothing to the policy
            gradient, so they may be left out exactly; only terms of KL and entropy and a teacher need them.
            They count in the averages either way.
        max_turns: most actions of an episode.
        max_pixels: of a micro-batch's media; a tree that has more goes alone. None is no limit.
        images_once: an image that several micro-batches of a rank show runs through the tower with
            gradient once; they must then be computed in order, with one `StepFeatures`. Else each
            micro-batch is for itself.
        tower_always: the vision tower runs in every micro-batch, on a blank image if no rank has one.
        sequence_parallel: ranks in a row that get a slice each of the same micro-batches.
        keeps_origins: say of each trained token which one of the step's rollouts it is (logging.rollouts).
        numbers_steps: say of each trained token where it is in its episode, for a critic.
        policies: number of the policy of each agent, where there are several; empty for one.
        restricts: where actions have a form (`Turn.form`), say of each trained token which action it is of
            and where in it, since the engine could not sample every token there.
    """

    num_ranks: int
    max_tokens: int
    max_completion_tokens: int
    aggregation: Aggregation = "token"
    normalize: Literal["none", "batch"] = "none"
    keep_zero_advantage: bool = True
    max_turns: int = 1
    max_pixels: int | None = None
    images_once: bool = False
    tower_always: bool = False
    sequence_parallel: int = 1
    numbers_steps: bool = False
    keeps_origins: bool = False
    policies: Mapping[str, int] = field(default_factory=dict)
    restricts: bool = False

    @classmethod
    def of(
        cls, config: Config, algorithm: AlgorithmConfig | None = None, *, generated: bool = True
    ) -> PackOptions:
        """Options for a run's trainer.

        Args:
            config: the whole config.
            algorithm: whose loss is computed; None is the plain mean over all action tokens, as in supervised
                training. With `preferences` the loss is one of pairs, whatever is given.
            generated: whether the run's engines generated what is trained.
        """
        mean: Aggregation = "token" if algorithm is None else algorithm.aggregation
        return cls(
            num_ranks=config.trainer.world_size,
            max_tokens=config.trainer.max_tokens_per_micro_batch,
            max_completion_tokens=config.rollout.max_tokens,
            aggregation="group" if config.preferences is not None else mean,
            normalize="none" if algorithm is None or algorithm.changes_advantages else algorithm.normalize,
            keep_zero_advantage=algorithm is None or algorithm.trains_all_groups,
            max_turns=config.episodes.max_turns,
            max_pixels=config.trainer.max_pixels_per_micro_batch,
            images_once=True,
            # DeepSpeed gives an offloaded optimizer the gradients that a step's last micro-batch computes.
            tower_always=config.trainer.offload_optimizer or config.trainer.offload_parameters,
            sequence_parallel=config.trainer.sequence_parallel,
            numbers_steps=algorithm is not None and algorithm.critic is not None,
            keeps_origins=algorithm is not None and config.logging.rollouts.every > 0,
            policies=number_of_agent(config),
            restricts=generated,
        )
