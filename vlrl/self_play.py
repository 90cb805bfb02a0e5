"""An episode of several agents, all of them played by the policy: each has a session of its own."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import replace

from vlrl.context import visible
from vlrl.env_host.host import HostedEnv
from vlrl.protocols import Observation, StepResult
from vlrl.session import Session
from vlrl.setting import SamplingFn, Setting, numbers, said_of, state_of
from vlrl.types import Sample, Trajectory


class SelfPlay:
    """Plays one episode of a `vlrl.protocols.MultiAgentEnv`.

    Agents that move at the same time are asked one after the other: none sees the others' moves before it
    has made its own, so that costs time and nothing else.
    """

    def __init__(
        self, sample: Sample, group_index: int, env: HostedEnv, sampling_of_turn: SamplingFn, setting: Setting
    ) -> None:
        self._sample, self._group_index, self._env = sample, group_index, env
        self._sampling_of_turn, self._setting = sampling_of_turn, setting
        self._sessions: dict[str, Session] = {}
        self._infos: dict[str, Mapping[str, float]] = {}
        self._ended: dict[str, bool] = {}  # agent → whether it ended by the rules, not by a limit

    async def play(self) -> list[Trajectory]:
        """One trajectory for each agent that acted, in the order of the environment's agents."""
        start = time.perf_counter()
        views: Mapping[str, Observation] = await self._env.reset()
        for agent, view in views.items():
            await self._see(agent, view, "start")
        to_act = list(views)
        while to_act:
            actions = {}
            for agent in to_act:
                text = await self._act(agent)
                if text is None:  # no room: nobody can go on without it
                    return self._trajectories(start)
                actions[agent] = text
            results: Mapping[str, StepResult] = await self._env.step(actions)
            to_act = [agent for agent, result in results.items() if await self._noted(agent, result)]
        return self._trajectories(start)

    async def _act(self, agent: str) -> str | None:
        """Draw an agent's action; None if it has no turn or no room left."""
        config, processor, session = self._setting.config, self._setting.processor, self._sessions[agent]
        if session.num_turns == config.episodes.max_turns:
            return None
        processor.show(session, visible(session.conversation, config.episodes.context))
        sampling = self._sampling_of_turn(f"{agent}/{session.num_turns}")
        if len(session.token_ids) + sampling.max_tokens > config.generator.max_model_len:
            return None
        return processor.act(session, await self._setting.policy.generate(session, sampling))

    async def _noted(self, agent: str, result: StepResult) -> bool:
        """Put a result down; True if the agent is to act again."""
        session = self._sessions.get(agent)
        if session is not None and session.num_turns:
            session.grade(result.reward, invalid=bool(result.info.get("invalid", False)), info=result.info)
        self._infos[agent] = numbers(result.info)
        if result.terminated or result.truncated:
            self._ended[agent] = result.terminated
            return False
        await self._see(agent, result.observation, str(result.info.get("state") or ""))
        return True

    async def _see(self, agent: str, view: Observation, state: str) -> None:
        said = await said_of(view, self._sample.id, self._setting)
        session = self._sessions.get(agent)
        if session is not None:
            session.append_message(said, state or state_of(said))
            return
        prompt = self._env.system_prompts[agent]
        system = [{"role": "system", "content": [{"type": "text", "text": prompt}]}] if prompt else []
        messages = (*system, said.message)
        opening = await asyncio.to_thread(self._setting.processor.encode, messages, said.media)
        sample = replace(
            self._sample, id=f"{self._sample.id}/{agent}", messages=messages, media=said.media, prompt=opening
        )
        self._sessions[agent] = Session(sample, self._group_index, said.seen)

    def _trajectories(self, start: float) -> list[Trajectory]:
        duration_s = time.perf_counter() - start
        trajectories = []
        for agent in self._env.system_prompts:
            session = self._sessions.get(agent)
            if session is not None and session.last_turn is not None:
                outcome = "ok" if self._ended.get(agent, False) else "truncated"
                info = self._infos.get(agent, {})
                text = session.last_turn.text
                trajectories.append(
                    session.trajectory(text, "ok" if outcome == "ok" else "truncated", duration_s, info=info)
                )
        return trajectories
