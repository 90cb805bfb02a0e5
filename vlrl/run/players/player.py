"""The player of tickets, in the driver or a worker: samples, rewards, environments and a policy."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial

from vlrl.algorithm.credit import MaskFn
from vlrl.algorithm.filters import NamedFilter
from vlrl.config import Config
from vlrl.config.learning.policies import untrained_agents
from vlrl.data import SampleStream
from vlrl.data.curriculum.open import static_orders
from vlrl.data.run_data import RunData, Sources, TellFn
from vlrl.data.stream import PreparedSample
from vlrl.environment.host.host import EnvHost
from vlrl.processors.auto import open_processor
from vlrl.protocols import Policy
from vlrl.registry import resolve
from vlrl.rollout.buffer import Ticket
from vlrl.rollout.context import RolloutContext, endpoint_of
from vlrl.rollout.outcome import TicketOutcome
from vlrl.run.players.heldout import Answers, Asking, answer
from vlrl.scoring.compose import ComposedReward
from vlrl.tracking.timeline import Timeline
from vlrl.types import Sample, Trajectory


@dataclass(frozen=True, slots=True)
class Player:
    """Whatever tickets are played with; `vlrl.grpo.generate_groups` says how.

    Attributes:
        config: the whole config.
        stream: samples by position.
        context: what episodes are played with.
        reward: scores them.
        masks: of tokens that are left out of the loss.
        filters: which groups are kept.
        policy_of: the policy of a position's episodes; None is the context's for all.
    """

    config: Config
    stream: SampleStream
    context: RolloutContext
    reward: ComposedReward
    masks: Sequence[MaskFn]
    filters: Sequence[NamedFilter] = ()
    policy_of: Callable[[int], Policy] | None = None

    def __post_init__(self) -> None:
        self.reward.watch = self._note_scoring

    def _note_scoring(self, trajectories: Sequence[Trajectory], start: float, end: float) -> None:
        """Note it in each episode's trace; they were scored together."""
        for trajectory in trajectories:
            self.context.timeline.ended_part(
                "reward", "score", start, end, trace=trajectory.trace, num_scored=len(trajectories)
            )

    @property
    def untrained(self) -> frozenset[str]:
        """Agents that a frozen policy plays."""
        return untrained_agents(self.config)

    async def samples(self, tickets: Sequence[Ticket[TicketOutcome]]) -> list[PreparedSample]:
        """The samples of tickets, prepared by the stream's threads."""
        chosen = {ticket.position: ticket.row for ticket in tickets if ticket.row is not None}
        prepared = self.stream.prepare([ticket.position for ticket in tickets], chosen)
        return await asyncio.gather(*map(asyncio.wrap_future, prepared))

    def policies(self, positions: Sequence[int]) -> list[Policy]:
        """Who generates for each position."""
        if self.policy_of is None:
            return [self.context.policy] * len(positions)
        return [self.policy_of(position) for position in positions]

    async def answer(self, samples: Sequence[Sample], positions: Sequence[int], asking: Asking) -> Answers:
        """Samples played and scored, see `vlrl.run.players.heldout.answer`."""
        return await answer(
            samples,
            self.context,
            self.reward,
            asking,
            positions=positions,
            policies=self.policies(positions),
        )


def open_player(
    config: Config,
    policy: Policy,
    timeline: Timeline,
    stack: AsyncExitStack,
    *,
    owns: Callable[[int], bool],
    tell: TellFn,
    policy_of: Callable[[int], Policy] | None,
) -> Player:
    """Open all that a player needs in a process of its own; the stack closes it.

    Args:
        config: the whole config.
        policy: generates.
        timeline: of the run.
        stack: what it is closed with.
        owns: positions whose samples are prepared ahead.
        tell: called with an event's name and a sentence.
        policy_of: the policy of a position's episodes; None is the one policy for all.
    """
    return open_data_player(config, policy, timeline, stack, owns=owns, tell=tell, policy_of=policy_of)[0]


def open_data_player(
    config: Config,
    policy: Policy,
    timeline: Timeline,
    stack: AsyncExitStack,
    *,
    owns: Callable[[int], bool],
    tell: TellFn,
    policy_of: Callable[[int], Policy] | None,
) -> tuple[Player, RunData]:
    """`open_player`, with the data that it plays."""
    sources, processor = Sources.open(config), open_processor(config)
    reward = ComposedReward.of_run(config, sources.rewards)
    stack.callback(reward.close)
    orders = static_orders(config, sources.train)
    data = RunData(config, sources, processor, supervised=False, tell=tell, owns=owns, orders=orders)
    stack.callback(data.close)
    host = EnvHost(config.env, max_open=config.episodes.max_episodes, around=timeline.around_env)
    stack.callback(host.close)
    context = RolloutContext(policy, processor, host, config, endpoint_of(config), timeline)
    stack.push_async_callback(context.endpoint.close)
    stack.callback(timeline.close)
    masks, filters = masks_of(config), filters_of(config)
    return Player(config, data.stream, context, reward, masks, filters, policy_of), data


def masks_of(config: Config) -> list[MaskFn]:
    """The config's masks of tokens."""
    return [resolve("masks", name) for name in config.algorithm.masks]


def filters_of(config: Config) -> list[NamedFilter]:
    """The config's filters of groups, by name."""
    return [(f.name, partial(resolve("filters", f.name), **f.options)) for f in config.batch.filters]
