"""One episode: what a policy and an environment say to each other until it ends."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from dataclasses import replace

from vlrl.agent import AGENT
from vlrl.agent_episode import play_agent
from vlrl.context import visible
from vlrl.env_host.failure import EnvFailure
from vlrl.env_host.host import HostedEnv
from vlrl.errors import DataError
from vlrl.protocols import Observation
from vlrl.self_play import SelfPlay
from vlrl.session import Said, Session, conversation_of
from vlrl.setting import SamplingFn, Setting, numbers, said_of, state_of
from vlrl.types import EnvTask, Outcome, Sample, Sampling, Trajectory


async def play_episode(
    sample: Sample, group_index: int, sampling_of_turn: SamplingFn, setting: Setting, counts: Counter[str]
) -> list[Trajectory]:
    """Play a sample's episode; one that fails is played again from the start with the same seeds (law 7).

    Args:
        sample: its env says where; without one, the question is answered once.
        group_index: which of the group's n.
        sampling_of_turn: how the action of a turn is drawn.
        setting: policy, processor and environments.
        counts: failures are added by kind, every attempt's.

    Returns:
        The trajectory, unscored; of several agents, each one's. It has failed if every attempt did.
    """
    if sample.env is None:
        return [await _answer(sample, group_index, sampling_of_turn(0), setting)]
    for attempt in range(setting.config.env.attempts):
        trajectories = await _attempt(sample, sample.env, group_index, sampling_of_turn, setting, counts)
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
                if env.system_prompts:
                    return await SelfPlay(sample, group_index, env, sampling_of_turn, setting).play()
                session = await _begin(sample, group_index, env, setting)
                return [await _play(session, env, sampling_of_turn, setting, start)]
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


async def _begin(sample: Sample, group_index: int, env: HostedEnv, setting: Setting) -> Session:
    """Reset the environment; if it shows what the sample shows, the group shares the sample's prompt."""
    observation = await env.reset()
    if observation == Observation():  # it has nothing to add to the sample's own messages
        return Session(sample, group_index)
    said = await said_of(observation, sample.id, setting)
    opening = conversation_of(sample)
    if not _same(opening[-1], said):
        opening = (*(old for old in opening if old.message["role"] == "system"), said)
        messages = tuple(old.message for old in opening)
        prompt = setting.processor.encode(messages, said.media, sample.tools)
        sample = replace(sample, messages=messages, media=said.media, prompt=prompt)
    return Session(sample, group_index)


async def _play(
    session: Session, env: HostedEnv, sampling_of_turn: SamplingFn, setting: Setting, start: float
) -> Trajectory:
    """Act and observe in turn until the environment ends the episode, or there is no more room."""
    config, processor = setting.config, setting.processor
    text, outcome, info = "", "truncated", {}
    for turn in range(config.episodes.max_turns):
        processor.show(session, visible(session.conversation, config.episodes.context))
        sampling = sampling_of_turn(turn)
        if turn and len(session.token_ids) + sampling.max_tokens > config.generator.max_model_len:
            break  # whole turns only: nothing is ever cut (law 4)
        text = processor.act(session, await setting.policy.generate(session, sampling))
        result = await env.step(text)
        session.grade(result.reward, invalid=bool(result.info.get("invalid", False)))
        info = numbers(result.info)
        if result.terminated or result.truncated:
            outcome = "ok" if result.terminated else "truncated"
            break
        said = await said_of(result.observation, session.sample.id, setting)
        session.append_message(said, str(result.info.get("state") or state_of(said)))
    duration_s = time.perf_counter() - start
    return session.trajectory(text, "ok" if outcome == "ok" else "truncated", duration_s, info=info)


def _same(first: Said, second: Said) -> bool:
    hashes = [[medium.sha256 for medium in said.media] for said in (first, second)]
    return first.message == second.message and hashes[0] == hashes[1]
