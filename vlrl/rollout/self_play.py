"""An episode of several agents, all of them played by the policy: each has a session of its own."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace

from vlrl.config.learning.policies import form_of_agent
from vlrl.environment.host.failure import EnvFailure
from vlrl.environment.host.host import EnvHost, HostedEnv
from vlrl.errors import ConfigError
from vlrl.protocols import Observation
from vlrl.rollout.context import RolloutContext, SamplingFn, media_message
from vlrl.rollout.session import Session
from vlrl.rollout.turns import TurnLoop
from vlrl.types import Sample, Trajectory


class SelfPlay(TurnLoop):
    """Plays one episode of a `vlrl.protocols.MultiAgentEnv`."""

    def __init__(
        self,
        sample: Sample,
        group_index: int,
        env: HostedEnv,
        sampling_of_turn: SamplingFn,
        context: RolloutContext,
    ) -> None:
        super().__init__(env, sampling_of_turn, context)
        self._sample, self._group_index = sample, group_index
        self._forms = form_of_agent(context.config)

    async def play(self) -> list[Trajectory]:
        """One trajectory for each agent that acted, in the order of the environment's agents."""
        start = time.perf_counter()
        views: Mapping[str, Observation] = await self._env.reset()
        for agent, view in views.items():
            await self._see(agent, view, "start")
        await self.run(views)
        acted = {agent for agent, session in self.sessions.items() if session.num_turns}
        return [self.trajectory(agent, start) for agent in self._env.system_prompts if agent in acted]

    async def _see(self, agent: str, view: Observation, state: str) -> None:
        if agent in self.sessions:
            return await super()._see(agent, view, state)
        said = await media_message(view, self._sample.id, self._context)
        prompt = self._env.system_prompts[agent]
        system = [{"role": "system", "content": [{"type": "text", "text": prompt}]}] if prompt else []
        messages = (*system, said.message)
        opening = await asyncio.to_thread(self._context.processor.encode, messages, said.media)
        sample = replace(
            self._sample,
            id=f"{self._sample.id}/{agent}",
            agent=agent,
            form=self._forms.get(agent, self._sample.form),
            messages=messages,
            media=said.media,
            prompt=opening,
        )
        self.sessions[agent] = Session(sample, self._group_index, said.seen, said.form)


async def try_policies(samples: Iterable[Sample], host: EnvHost, policies: Mapping[str, int]) -> None:
    """Raise ConfigError if an agent of these samples' environments is played by no policy: each is tried.

    Args:
        samples: the first of a run.
        host: opens environments.
        policies: of `vlrl.config.learning.policies.number_of_agent`.
    """
    tried: set[tuple[str, str]] = set()
    named = f"policies name {', '.join(policies)}"
    for sample in samples:
        if sample.env is None:
            raise ConfigError(f"sample {sample.id!r} has no environment, and {named}; remove policies")
        if (key := (sample.env.name, repr(sample.env.options))) in tried:
            continue
        tried.add(key)
        try:
            env = await host.open(sample.env)
        except EnvFailure as failure:
            raise ConfigError(f"its agents are not known: {failure}") from failure
        agents = tuple(env.system_prompts)
        await env.close()
        if not agents:
            raise ConfigError(
                f"env {sample.env.name!r} has one agent, and {named}; remove policies, or train in an "
                "environment of several agents"
            )
        if left := [agent for agent in agents if agent not in policies]:
            raise ConfigError(
                f"env {sample.env.name!r} has the agents {', '.join(agents)}, and {named}: nobody plays "
                f"{', '.join(left)}; name each agent in one policies.NAME.agents"
            )
