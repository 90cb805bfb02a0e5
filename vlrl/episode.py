"""One episode: what a policy and an environment say to each other until it ends."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from contextlib import suppress
from dataclasses import replace

from vlrl.agent import AGENT
from vlrl.agent_episode import play_agent
from vlrl.branch_points import BranchPoint, BranchPoints, require_branches
from vlrl.context import visible
from vlrl.env_host.failure import EnvFailure
from vlrl.env_host.host import HostedEnv
from vlrl.envs.observe import digest_of
from vlrl.errors import DataError
from vlrl.processors.coordinates import Canvas
from vlrl.protocols import Observation
from vlrl.self_play import SelfPlay
from vlrl.session import Said, Session, conversation_of
from vlrl.setting import SamplingFn, Setting, numbers, said_of, state_of
from vlrl.types import EnvTask, Outcome, Sample, Sampling, Trajectory


async def play_episode(
    sample: Sample,
    group_index: int,
    sampling_of_turn: SamplingFn,
    setting: Setting,
    counts: Counter[str],
    *,
    origin: BranchPoint | None = None,
    points: BranchPoints | None = None,
) -> list[Trajectory]:
    """Play a sample's episode; one that fails is played again from its start with the same seeds (law 7).

    Args:
        sample: its env says where; without one, the question is answered once.
        group_index: which of the group's n.
        sampling_of_turn: how the action of a turn is drawn.
        setting: policy, processor and environments.
        counts: failures are added by kind, every attempt's.
        origin: the point of another episode that it branches off; None is the reset.
        points: where others may branch off it is noted here.

    Returns:
        The trajectory, unscored; of several agents, each one's. It has failed if every attempt did.
    """
    if sample.env is None:
        return [await _answer(sample, group_index, sampling_of_turn(0), setting)]
    for attempt in range(setting.config.env.attempts):
        trajectories = await _attempt(
            sample, sample.env, group_index, sampling_of_turn, setting, counts, origin, points
        )
        if not any(trajectory.failed for trajectory in trajectories):
            counts["replayed_episodes"] += attempt > 0
            break
    return trajectories


async def _answer(sample: Sample, group_index: int, sampling: Sampling, setting: Setting) -> Trajectory:
    """One question, one answer."""
    start = time.perf_counter()
    session = Session(sample, group_index)
    generation = await setting.policy.generate(session, sampling)
    text = setting.processor.act(session, generation)
    outcome: Outcome = "ok" if generation.finished else "truncated"
    return session.trajectory(text, outcome, time.perf_counter() - start)


async def _attempt(
    sample: Sample,
    task: EnvTask,
    group_index: int,
    sampling_of_turn: SamplingFn,
    setting: Setting,
    counts: Counter[str],
    origin: BranchPoint | None,
    points: BranchPoints | None,
) -> list[Trajectory]:
    if task.name == AGENT:
        return [await play_agent(sample, task, group_index, sampling_of_turn, setting, counts)]
    start = time.perf_counter()
    session = Session(sample, group_index)  # replaced when the episode has begun; so a failure has one too
    outcome: Outcome = "env_error"
    try:
        async with asyncio.timeout(setting.config.episodes.timeout_s) as clock:
            env = await setting.host.open(task)
            try:
                if points is not None:
                    require_branches(env, task.name)
                if env.system_prompts:
                    return await SelfPlay(sample, group_index, env, sampling_of_turn, setting).play()
                session = await _begin(sample, group_index, env, setting, origin)
                return [await _play(session, env, sampling_of_turn, setting, start, points)]
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
        limit_s = setting.config.episodes.timeout_s
        failure = f"env {task.name!r}: took longer than episodes.timeout_s={limit_s:g}"
    counts[kind] += 1
    duration_s = time.perf_counter() - start
    return [session.trajectory("", outcome, duration_s, failure=failure)]


async def _begin(
    sample: Sample, group_index: int, env: HostedEnv, setting: Setting, origin: BranchPoint | None
) -> Session:
    """Reset the environment; if it shows what the sample shows, the group shares the sample's prompt."""
    observation = await env.reset()
    if origin is not None:
        await env.restore(origin.state)
        return origin.session.branch(group_index)
    if observation == Observation():  # it has nothing to add to the sample's own messages
        return Session(sample, group_index, digest_of(observation))
    said = await said_of(observation, sample.id, setting)
    opening = conversation_of(sample)
    if not _same(opening[-1], said):
        opening = (*(old for old in opening if old.message["role"] == "system"), said)
        messages = tuple(old.message for old in opening)
        prompt = setting.processor.encode(messages, said.media, sample.tools)
        sample = replace(sample, messages=messages, media=said.media, prompt=prompt)
    return Session(sample, group_index, said.seen)


async def _play(
    session: Session,
    env: HostedEnv,
    sampling_of_turn: SamplingFn,
    setting: Setting,
    start: float,
    points: BranchPoints | None,
) -> Trajectory:
    """Act and observe in turn until the environment ends the episode, or there is no more room."""
    config, processor = setting.config, setting.processor
    text, outcome, info, end = "", "truncated", {}, None
    for turn in range(session.num_turns, config.episodes.max_turns):
        processor.show(session, visible(session.conversation, config.episodes.context))
        shown, sampling = session.conversation[-1], sampling_of_turn(turn)
        if turn and len(session.token_ids) + sampling.max_tokens > config.generator.max_model_len:
            break  # whole turns only: nothing is ever cut (law 4)
        text = processor.act(session, await setting.policy.generate(session, sampling))
        if env.sees:
            await env.seen([Canvas.of(medium) for medium in shown.media])
        result = await env.step(text)
        session.grade(result.reward, invalid=bool(result.info.get("invalid", False)), info=result.info)
        info = numbers(result.info)
        if result.terminated or result.truncated:
            outcome = "ok" if result.terminated else "truncated"
            end = await _ending(result.observation, session, setting)
            break
        said = await said_of(result.observation, session.sample.id, setting)
        session.append_message(said, str(result.info.get("state") or state_of(said)))
        if points is not None:
            await points.pass_by(session, env)
    duration_s = time.perf_counter() - start
    ended: Outcome = "ok" if outcome == "ok" else "truncated"
    return session.trajectory(text, ended, duration_s, info=info, end=end)


async def _ending(observation: Observation, session: Session, setting: Setting) -> Said:
    """What the last action led to; nobody acts on it, so it need not be fit to be shown to a model.

    Of a single turn the pictures are not kept: those of a big batch would double its memory.
    """
    if session.num_turns > 1 and (observation.images or observation.videos):
        with suppress(DataError):
            return await said_of(observation, session.sample.id, setting)
    return Said({}, seen=digest_of(observation))


def _same(first: Said, second: Said) -> bool:
    hashes = [[medium.sha256 for medium in said.media] for said in (first, second)]
    return first.message == second.message and hashes[0] == hashes[1]
