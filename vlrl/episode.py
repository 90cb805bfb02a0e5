"""One episode: what a policy and an environment say to each other until it ends."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

from vlrl.config import Config
from vlrl.context import visible
from vlrl.env_host.failure import EnvFailure
from vlrl.env_host.host import EnvHost, HostedEnv
from vlrl.envs.observe import parts_of
from vlrl.errors import DataError
from vlrl.protocols import Observation, Policy, Processor
from vlrl.session import Said, Session, conversation_of
from vlrl.types import EnvTask, Outcome, Sample, Sampling, Trajectory

SamplingFn = Callable[[int], Sampling]
"""turn → how its action is drawn."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What every episode of a run is played with."""

    policy: Policy
    processor: Processor
    host: EnvHost
    config: Config


async def play_episode(
    sample: Sample, group_index: int, sampling_of_turn: SamplingFn, setting: Setting, counts: Counter[str]
) -> Trajectory:
    """Play a sample's episode; one that fails is played again from the start with the same seeds (law 7).

    Args:
        sample: its env says where; without one, the question is answered once.
        group_index: which of the group's n.
        sampling_of_turn: how the action of a turn is drawn.
        setting: policy, processor and environments.
        counts: failures are added by kind, every attempt's.

    Returns:
        The trajectory, unscored. It has failed if every attempt did.
    """
    if sample.env is None:
        return await _answer(sample, group_index, sampling_of_turn(0), setting)
    for attempt in range(setting.config.env.attempts):
        trajectory = await _attempt(sample, sample.env, group_index, sampling_of_turn, setting, counts)
        if not trajectory.failed:
            counts["replayed_episodes"] += attempt > 0
            break
    return trajectory


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
) -> Trajectory:
    start = time.perf_counter()
    session = Session(sample, group_index)  # replaced when the episode has begun; so a failure has one too
    outcome: Outcome = "env_error"
    try:
        async with asyncio.timeout(setting.config.episodes.timeout_s) as clock:
            env = await setting.host.open(task)
            try:
                session = await _begin(sample, group_index, env, setting)
                return await _play(session, env, sampling_of_turn, setting, start)
            finally:
                await env.close()
    except EnvFailure as error:
        kind, failure = f"env_{error.kind}", f"{error.reason}\n{error.trace}".strip()
        outcome = "timeout" if error.kind == "hung" else "env_error"
    except DataError as error:  # what it showed cannot be shown to a model
        kind, failure = "env_raised", str(error)
    except TimeoutError:
        if not clock.expired():
            raise
        kind, outcome = "episode_hung", "timeout"
        failure = f"took longer than episodes.timeout_s={setting.config.episodes.timeout_s:g}"
    counts[kind] += 1
    return session.trajectory("", outcome, time.perf_counter() - start, failure=f"env {task.name!r}: {failure}")


async def _begin(sample: Sample, group_index: int, env: HostedEnv, setting: Setting) -> Session:
    """Reset the environment; if it shows what the sample shows, the group shares the sample's prompt."""
    observation = await env.reset()
    if observation == Observation():  # it has nothing to add to the sample's own messages
        return Session(sample, group_index)
    said = await _said(observation, sample, setting)
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
        info = _numbers(result.info)
        if result.terminated or result.truncated:
            outcome = "ok" if result.terminated else "truncated"
            break
        said = await _said(result.observation, session.sample, setting)
        session.append_message(said, str(result.info.get("state") or _state_of(said)))
    duration_s = time.perf_counter() - start
    return session.trajectory(text, "ok" if outcome == "ok" else "truncated", duration_s, info=info)


async def _said(observation: Observation, sample: Sample, setting: Setting) -> Said:
    """An observation as a message; pictures are resized in a thread."""
    where = f"{sample.id}, observation"
    message = setting.processor.message
    parts = parts_of(observation)
    if any(part["type"] != "text" for part in parts) and setting.config.env.isolation != "inline":
        said = await asyncio.to_thread(message, observation.role, parts, where)
    else:
        said = message(observation.role, parts, where)
    return replace(said, summary=observation.summary)


def _same(first: Said, second: Said) -> bool:
    hashes = [[medium.sha256 for medium in said.media] for said in (first, second)]
    return first.message == second.message and hashes[0] == hashes[1]


def _state_of(said: Said) -> str:
    """A name for what is shown, where the environment gives none."""
    digest = hashlib.sha256(repr(said.message).encode())
    for medium in said.media:
        digest.update(medium.sha256.encode())
    return digest.hexdigest()[:16]


def _numbers(info: Mapping[str, Any]) -> dict[str, float]:
    """What can be logged."""
    return {key: float(value) for key, value in info.items() if isinstance(value, Real)}
