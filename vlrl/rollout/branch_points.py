"""Points at which an episode can branch: what was seen and generated so far, and the environment's state."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from vlrl.config import Config
from vlrl.config.learning.policies import number_of_agent
from vlrl.config.rollout import BranchingConfig
from vlrl.environment.host.failure import EnvFailure
from vlrl.environment.host.host import EnvHost, HostedEnv
from vlrl.errors import ConfigError
from vlrl.rollout.endpoint.agent import AGENT
from vlrl.rollout.self_play import try_policies
from vlrl.rollout.session import Session
from vlrl.types import EnvTask, Sample

REMEDY = "give it snapshot() and restore(), or set episodes.branching.num_branches=1"


@dataclass(frozen=True, slots=True)
class BranchPoint:
    """An episode after some of its turns; never changed, so any number of episodes can begin with it.

    Attributes:
        session: to be branched.
        state: the environment's snapshot.
    """

    session: Session
    state: bytes


class BranchPoints:
    """Points of an episode that may still become the one at which it branches."""

    def __init__(self, config: BranchingConfig, seed: int) -> None:
        self._at = config.at
        self._seed = seed
        self._kept: dict[int, BranchPoint] = {}

    async def pass_by(self, session: Session, env: HostedEnv) -> None:
        """Note the point that the episode has reached; it has not ended.

        If it is played again, what was noted before is noted again.

        Raises:
            EnvFailure: if no snapshot can be taken.
        """
        turn = session.num_turns
        if isinstance(self._at, int) and turn != self._at:
            return
        self._kept[turn] = BranchPoint(session.branch(session.group_index), await env.snapshot())
        wanted = self._turn(turn)  # were it to end here; if it goes on, the middle moves on as well
        for other in [other for other in self._kept if other != turn]:
            if other < wanted or (self._at == "random" and other != wanted):
                del self._kept[other]

    def chosen(self, num_turns: int) -> BranchPoint | None:
        """The one that is asked for, of an episode of so many turns; None if it is too short."""
        return self._kept.get(self._turn(num_turns))

    def _turn(self, num_turns: int) -> int:
        """The branch point's number of turns; 0 for none."""
        if self._at == "middle":
            return num_turns // 2
        if self._at == "random":
            ranks = np.random.default_rng(self._seed).random(num_turns + 1)
            return int(ranks[1:num_turns].argmax()) + 1 if num_turns > 1 else 0
        return self._at if self._at < num_turns else 0


def require_branches(env: HostedEnv, name: str) -> None:
    """Raise ConfigError for an environment whose episodes cannot branch."""
    if env.system_prompts:
        raise ConfigError(
            f"env {name!r} has several agents, whose episodes do not branch; set "
            "episodes.branching.num_branches=1"
        )
    if not env.snapshots:
        raise ConfigError(f"env {name!r} has no snapshot and restore, so episodes cannot branch; {REMEDY}")


async def try_envs(samples: Sequence[Sample], host: EnvHost, config: Config, *, train: bool) -> None:
    """Raise ConfigError if the environments of these samples do not fit the config: each is tried once."""
    if train and config.episodes.branching.num_branches > 1:
        await try_branches(samples, host)
    if config.policies:
        await try_policies(samples, host, number_of_agent(config))


async def try_branches(samples: Iterable[Sample], host: EnvHost) -> None:
    """Raise ConfigError if an environment of these samples cannot branch: each is tried once."""
    tasks = {(s.env.name, repr(s.env.options)): s.env for s in samples if s.env is not None}
    for task in tasks.values():
        if task.name == AGENT:
            raise ConfigError("an agent's episode does not branch; set episodes.branching.num_branches=1")
        try:
            await _try(task, host)
        except EnvFailure as failure:
            raise ConfigError(f"episodes cannot branch: {failure}; {REMEDY}") from failure


async def _try(task: EnvTask, host: EnvHost) -> None:
    env = await host.open(task)
    try:
        require_branches(env, task.name)
        await env.reset()
        await env.restore(await env.snapshot())
    finally:
        await env.close()
