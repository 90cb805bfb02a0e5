"""One episode: a policy acts and an environment answers until the episode ends."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace

from vlrl.environment.host.failure import EnvFailure
from vlrl.environment.host.host import HostedEnv
from vlrl.environment.observe import digest_of
from vlrl.errors import DataError
from vlrl.model.structured.forms import form_of
from vlrl.protocols import Observation, StepResult
from vlrl.rollout.branch_points import BranchPoint, BranchPoints, require_branches
from vlrl.rollout.context import RolloutContext, SamplingFn, media_message
from vlrl.rollout.endpoint.agent import AGENT
from vlrl.rollout.endpoint.agent_episode import play_agent
from vlrl.rollout.self_play import SelfPlay
from vlrl.rollout.session import MediaMessage, Session, conversation_of
from vlrl.rollout.turns import SOLO, TurnLoop
from vlrl.types import EnvTask, Outcome, Sample, Sampling, Trajectory


async def play_episode(
    sample: Sample,
    group_index: int,
    sampling_of_turn: SamplingFn,
    context: RolloutContext,
    counts: Counter[str],
    *,
    origin: BranchPoint | None = None,
    points: BranchPoints | None = None,
) -> list[Trajectory]:
    """Play a sample's episode; one that fails is played again from its start with the same seeds (law 7).

    Args:
        sample: its env says where; without one, the question is answered once.
        group_index: which of the group's n.
        sampling_of_turn: how the action of a turn is generated.
        context: policy, processor and environments.
        counts: failures are added by kind, every attempt's.
        origin: the point of another episode that it branches off; None is the reset.
        points: where others may branch off it is noted here.

    Returns:
        The trajectory, unscored; of several agents, each one's. It has failed if every attempt did.
    """
    if sample.env is None:
        return [await _answer(sample, group_index, sampling_of_turn(0), context)]
    for attempt in range(context.config.env.attempts):
        trajectories = await _attempt(
            sample, sample.env, group_index, sampling_of_turn, context, counts, origin, points
        )
        if not any(trajectory.failed for trajectory in trajectories):
            counts["replayed_episodes"] += attempt > 0
            break
    return trajectories


async def _answer(
    sample: Sample, group_index: int, sampling: Sampling, context: RolloutContext
) -> Trajectory:
    """One question, one answer."""
    start = time.perf_counter()
    session = Session(sample, group_index)
    generation = await context.policy.generate(session, sampling)
    text = context.processor.act(session, generation)
    outcome: Outcome = "ok" if generation.finished else "truncated"
    return session.trajectory(text, outcome, time.perf_counter() - start)


async def _attempt(
    sample: Sample,
    task: EnvTask,
    group_index: int,
    sampling_of_turn: SamplingFn,
    context: RolloutContext,
    counts: Counter[str],
    origin: BranchPoint | None,
    points: BranchPoints | None,
) -> list[Trajectory]:
    if task.name == AGENT:
        return [await play_agent(sample, task, group_index, sampling_of_turn, context, counts)]
    start = time.perf_counter()
    session = Session(sample, group_index)  # replaced when the episode has begun; so a failure has one too
    outcome: Outcome = "env_error"
    try:
        async with asyncio.timeout(context.config.episodes.timeout_s) as clock:
            env = await context.host.open(task)
            try:
                if points is not None:
                    require_branches(env, task.name)
                if env.system_prompts:
                    return await SelfPlay(sample, group_index, env, sampling_of_turn, context).play()
                session = await _begin(sample, group_index, env, context, origin)
                return [await _Solo(session, env, sampling_of_turn, context, points).play(start)]
            finally:
                await env.close()
    except EnvFailure as error:
        kind, failure = f"env_{error.kind}", f"{error.reason}\n{error.trace}".strip()
        outcome = "timeout" if error.kind == "hung" else "env_error"
    except DataError as error:  # what it showed cannot be shown to a model
        kind, failure = "env_raised", f"env {task.name!r}: {error}"
    except TimeoutError:
        if not clock.expired():
            raise
        kind, outcome = "episode_hung", "timeout"
        limit_s = context.config.episodes.timeout_s
        failure = f"env {task.name!r}: took longer than episodes.timeout_s={limit_s:g}"
    counts[kind] += 1
    duration_s = time.perf_counter() - start
    return [session.trajectory("", outcome, duration_s, failure=failure)]


async def _begin(
    sample: Sample, group_index: int, env: HostedEnv, context: RolloutContext, origin: BranchPoint | None
) -> Session:
    """Reset the environment; if it shows what the sample shows, the group shares the sample's prompt."""
    observation = await env.reset()
    if origin is not None:
        await env.restore(origin.state)
        return origin.session.branch(group_index)
    if replace(observation, structured_outputs=None) == Observation():  # nothing beside the sample's messages
        form = form_of(observation.structured_outputs, f"{sample.id}, observation")
        return Session(sample, group_index, digest_of(observation), form)
    said = await media_message(observation, sample.id, context)
    opening = conversation_of(sample)
    if not _same(opening[-1], said):
        opening = (*(old for old in opening if old.message["role"] == "system"), said)
        messages = tuple(old.message for old in opening)
        prompt = context.processor.encode(messages, said.media, sample.tools)
        sample = replace(sample, messages=messages, media=said.media, prompt=prompt)
    return Session(sample, group_index, said.seen, said.form)


class _Solo(TurnLoop):
    """The turns of an environment of one agent."""

    def __init__(
        self,
        session: Session,
        env: HostedEnv,
        sampling_of_turn: SamplingFn,
        context: RolloutContext,
        points: BranchPoints | None,
    ) -> None:
        super().__init__(env, sampling_of_turn, context)
        self.sessions[SOLO] = self._session = session
        self._points = points
        self._end: MediaMessage | None = None

    async def play(self, start: float) -> Trajectory:
        """The trajectory of an episode that began at `start`."""
        await self.run([SOLO])
        return self.trajectory(SOLO, start, self._end)

    def _has_room(self, session: Session, sampling: Sampling) -> bool:
        return session.num_turns == 0 or super()._has_room(session, sampling)  # it begins in any case

    async def _step(self, actions: Mapping[str, str]) -> Mapping[str, StepResult]:
        if self._env.sees and (turn := self._session.last_turn):
            await self._env.seen(turn.canvases)
        return {SOLO: await self._env.step(actions[SOLO])}

    async def _take(self, agent: str, result: StepResult) -> bool:
        goes_on = await super()._take(agent, result)
        if not goes_on:
            self._end = await _ending(result.observation, self._session, self._context)
        elif self._points is not None:
            await self._points.pass_by(self._session, self._env)
        return goes_on


async def _ending(observation: Observation, session: Session, context: RolloutContext) -> MediaMessage:
    """What the last action led to; nobody acts on it, so it need not be fit to be shown to a model.

    Of a single turn the images are not kept: those of a big batch would double its memory.
    """
    if session.num_turns > 1 and (observation.images or observation.videos):
        with suppress(DataError):
            return await media_message(observation, session.sample.id, context)
    return MediaMessage({}, seen=digest_of(observation))


def _same(first: MediaMessage, second: MediaMessage) -> bool:
    hashes = [[medium.sha256 for medium in said.media] for said in (first, second)]
    return first.message == second.message and hashes[0] == hashes[1]
