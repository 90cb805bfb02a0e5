"""The turn loop: agents act and the environment answers, until it ends the episode or no room is left."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping

from vlrl.environment.host.host import HostedEnv
from vlrl.protocols import Observation, StepResult
from vlrl.rollout.context import RolloutContext, SamplingFn, media_message, numbers, state_of
from vlrl.rollout.session import MediaMessage, Session
from vlrl.rollout.visible import visible
from vlrl.types import Outcome, Sampling, Trajectory

SOLO = ""
"""The name of the agent of an environment that has only one."""


class TurnLoop:
    """Plays the turns of an episode; each agent has a session of its own.

    Agents that move at the same time are asked one after the other: none sees the others' moves before it
    has made its own, so that costs time and nothing else.

    Attributes:
        sessions: by agent.
        texts: each agent's last action.
        infos: the numbers of each agent's last result.
        outcomes: how each agent's episode ended, once the environment ended it.
    """

    def __init__(self, env: HostedEnv, sampling_of_turn: SamplingFn, context: RolloutContext) -> None:
        self.sessions: dict[str, Session] = {}
        self.texts: dict[str, str] = {}
        self.infos: dict[str, Mapping[str, float]] = {}
        self.outcomes: dict[str, Outcome] = {}
        self._env, self._sampling_of_turn, self._context = env, sampling_of_turn, context

    async def run(self, to_act: Iterable[str]) -> None:
        """Play until all agents have ended, or one of those that are to act has no turn or no room left."""
        waiting = list(to_act)
        while waiting:
            actions = {}
            for agent in waiting:
                text = await self._act(agent)
                if text is None:  # nobody can go on without it
                    return
                actions[agent] = text
            results = await self._step(actions)
            waiting = [agent for agent, result in results.items() if await self._take(agent, result)]

    def trajectory(self, agent: str, start: float, end: MediaMessage | None = None) -> Trajectory:
        """What an agent saw and did in an episode that began at `start`, and what its last action led to."""
        text, outcome = self.texts.get(agent, ""), self.outcomes.get(agent, "truncated")
        duration_s, info = time.perf_counter() - start, self.infos.get(agent)
        return self.sessions[agent].trajectory(text, outcome, duration_s, info=info, end=end)

    async def _act(self, agent: str) -> str | None:
        """Generate an agent's action; None if it has no turn or no room left."""
        config, processor, session = self._context.config, self._context.processor, self.sessions[agent]
        turn = session.num_turns
        if turn >= config.episodes.max_turns:
            return None
        with self._context.timeline.part("prompt", "encode"):
            processor.show(session, visible(session.conversation, config.episodes.context))
        sampling = self._sampling_of_turn(turn if agent == SOLO else f"{agent}/{turn}")
        if not self._has_room(session, sampling):
            return None
        self.texts[agent] = processor.act(session, await self._context.policy.generate(session, sampling))
        return self.texts[agent]

    def _has_room(self, session: Session, sampling: Sampling) -> bool:
        """True if a whole turn fits: nothing is ever cut (law 4)."""
        return len(session.token_ids) + sampling.max_tokens <= self._context.config.generator.max_model_len

    async def _step(self, actions: Mapping[str, str]) -> Mapping[str, StepResult]:
        results: Mapping[str, StepResult] = await self._env.step(actions)
        return results

    async def _take(self, agent: str, result: StepResult) -> bool:
        """Note a result; True if the agent is to act again."""
        session = self.sessions.get(agent)
        if session is not None and session.num_turns:
            session.grade(result.reward, invalid=bool(result.info.get("invalid", False)), info=result.info)
        self.infos[agent] = numbers(result.info)
        if result.terminated or result.truncated:
            self.outcomes[agent] = "ok" if result.terminated else "truncated"
            return False
        await self._see(agent, result.observation, str(result.info.get("state") or ""))
        return True

    async def _see(self, agent: str, view: Observation, state: str) -> None:
        """Put what the environment shows an agent into its conversation."""
        session = self.sessions[agent]
        said = await media_message(view, session.sample.id, self._context)
        session.append_message(said, state or state_of(said))
