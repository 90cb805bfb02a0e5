"""One episode of an agent: it holds its own conversations through the endpoint, and says how it went."""

from __future__ import annotations

import asyncio
import shlex
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from vlrl.config import Config
from vlrl.errors import ConfigError
from vlrl.ledger import Ledger
from vlrl.rollout.context import RolloutContext, SamplingFn
from vlrl.rollout.endpoint import EndpointRecord
from vlrl.rollout.endpoint.agent import AGENT, Agent, AgentFailure, open_agent, read_result
from vlrl.types import EnvTask, Outcome, Sample, Trajectory

END_LIMIT_S = 10.0
"""A program that is killed and still there after so long is not waited for."""


def require_agents(samples: Iterable[Sample], config: Config) -> None:
    """Raise ConfigError for an agent that is not to be found, and under lockstep for any.

    It cannot be seen whether an agent waits for the model or does something else, so nothing can wait
    until everybody waits.
    """
    for sample in samples:
        if sample.env is not None and sample.env.name == AGENT:
            open_agent(sample.env)
            if config.episodes.lockstep:
                raise ConfigError(
                    f"sample {sample.id!r}: an agent calls the model at its own pace, which lockstep does "
                    "not allow; set episodes.lockstep=false"
                )


async def play_agent(
    sample: Sample,
    task: EnvTask,
    group_index: int,
    sampling_of_turn: SamplingFn,
    context: RolloutContext,
    counts: Counter[str],
) -> Trajectory:
    """Let an agent play a task once.

    Args:
        sample: the row.
        task: its env: the agent in the options, what it gets in the task.
        group_index: which of the group's n.
        sampling_of_turn: how an action is generated.
        context: policy, processor and endpoint.
        counts: a failure is added by kind: agent_raised, or episode_hung.

    Returns:
        The trajectory, unscored: what was generated for the agent, its reward on the last action. An agent
        that fails because the endpoint had no more room for its conversation, or turns, has ended truncated.

    Raises:
        ConfigError: for wrong options, or under lockstep.
    """
    require_agents([sample], context.config)
    agent, start = open_agent(task), time.perf_counter()
    record = EndpointRecord(sample, group_index, sampling_of_turn, context)
    reward, info, failure = 0.0, dict[str, float](), ""
    outcome: Outcome = "ok"
    limit_s = context.config.episodes.timeout_s
    try:
        async with asyncio.timeout(limit_s) as clock, context.endpoint.serving(record) as base_url:
            reward, info = read_result(await _played(agent, base_url, task, record))
        if not record.ledgers:
            raise AgentFailure("it made no request to the model")
    except AgentFailure as error:
        if not (record.outgrown and record.ledgers):
            counts["agent_raised"] += 1
            outcome, failure = "agent_error", str(error)
    except TimeoutError:
        if not clock.expired():
            raise
        counts["episode_hung"] += 1
        outcome, failure = "timeout", f"took longer than episodes.timeout_s={limit_s:g}"
    ledgers = _rewarded(record.ledgers, reward)
    return Trajectory(
        sample=sample,
        group_index=group_index,
        ledgers=ledgers,
        completion=ledgers[-1].turns[-1].text if ledgers else "",
        outcome="truncated" if outcome == "ok" and record.outgrown else outcome,
        duration_s=time.perf_counter() - start,
        info=info,
        failure=f"agent {_name(task)}: {failure}" if failure else "",
    )


async def _played(agent: Agent, base_url: str, task: EnvTask, record: EndpointRecord) -> Any:
    """What the agent says of its episode; what the policy raises is raised here. It is ended in any case."""
    playing = asyncio.create_task(agent.play(base_url, task.task, task.seed))
    try:
        await asyncio.wait([playing, record.fault], return_when=asyncio.FIRST_COMPLETED)
        if record.fault.done():
            record.fault.result()
        return playing.result()
    finally:
        playing.cancel()
        await asyncio.wait([playing], timeout=END_LIMIT_S)
        for done in (playing, record.fault):  # where one of them ended it, the other may have failed as well
            if done.done() and not done.cancelled():
                done.exception()


def _rewarded(ledgers: Sequence[Ledger], reward: float) -> tuple[Ledger, ...]:
    """The ledgers with the reward on the last action."""
    if not ledgers:
        return ()
    *turns, last = ledgers[-1].turns
    return (*ledgers[:-1], replace(ledgers[-1], turns=(*turns, replace(last, reward=reward))))


def _name(task: EnvTask) -> str:
    return repr(task.options.get("agent") or shlex.join(task.options["command"]))
