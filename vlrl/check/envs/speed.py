"""How fast an environment is, one of it in one thread: `vlrl env bench`."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from vlrl.check.envs.episodes import Request, Watched, usual_policy
from vlrl.check.envs.verdict import EnvCheck
from vlrl.environment.observe import pixels_of
from vlrl.protocols import Observation

CHECK_S = 0.5
"""Seconds that the check spends on each of resets and steps."""
SLOW_STEPS_PER_S = 20.0


def is_fast(env: Watched, request: Request) -> EnvCheck:
    """A first impression; `vlrl env bench` measures."""
    measured = measure(env, request, CHECK_S)
    found = "{:,.0f} resets and {:,.0f} steps a second; a step takes {:.2f} ms, at worst {:.2f}".format(
        *(measured[key] for key in ("resets_per_second", "steps_per_second", "step_ms_p50", "step_ms_p99"))
    )
    slow = measured["steps_per_second"] < SLOW_STEPS_PER_S
    return EnvCheck("speed", "warn" if slow else "ok", found)


def measure(env: Watched, request: Request, seconds: float) -> dict[str, Any]:
    """Resets and steps a second, the policy's own time left out.

    Args:
        env: the environment; neither calls nor images are checked here.
        request: for the task and the seeds.
        seconds: spent on resets, and again on steps.
    """
    first = env.reset(request.task, request.episode_seed(0))
    with env.within(request.timeout_s + 4 * seconds):
        resets = _resets(env, request, seconds)
    with env.within(request.timeout_s + 4 * seconds):
        steps = _steps(env, request, seconds)
    times = np.asarray(steps) * 1000
    return {
        "env": request.name,
        "steps_per_second": len(steps) / sum(steps),
        "resets_per_second": len(resets) / sum(resets),
        "step_ms_p50": float(np.percentile(times, 50)),
        "step_ms_p99": float(np.percentile(times, 99)),
        "reset_ms_p50": float(np.percentile(np.asarray(resets) * 1000, 50)),
        "num_steps": len(steps),
        "num_resets": len(resets),
        **_size(first),
    }


def _resets(env: Watched, request: Request, seconds: float) -> list[float]:
    """Seconds of each reset, for so long in all and twice at least."""
    times: list[float] = []
    while sum(times) < seconds or len(times) < 2:
        began = time.perf_counter()
        env.plain.reset(request.task, request.episode_seed(len(times)))
        times.append(time.perf_counter() - began)
    return times


def _steps(env: Watched, request: Request, seconds: float) -> list[float]:
    """Seconds of each step, for so long in all, resets counted but not returned, and twice at least."""
    plain, policy = env.plain, usual_policy(env.plain)
    times: list[float] = []
    rng, over, episode = np.random.default_rng(request.seed), True, 0
    until = time.perf_counter() + 2 * seconds
    while (sum(times) < seconds and time.perf_counter() < until) or len(times) < 2:
        if over:
            plain.reset(request.task, request.episode_seed(episode))
            episode += 1
        action = policy(plain, rng)
        began = time.perf_counter()
        result = plain.step(action)
        times.append(time.perf_counter() - began)
        over = bool(result.terminated or result.truncated)
    return times


def _size(observation: Observation) -> dict[str, Any]:
    images = [pixels_of(image) for image in observation.images]
    frames = [pixels_of(frame) for video in observation.videos for frame in video.frames]
    return {
        "observation": [f"{p.shape[1]}×{p.shape[0]}" for p in images]
        + [f"video of {len(video.frames)}" for video in observation.videos],
        "observation_bytes": sum(p.nbytes for p in (*images, *frames)),
    }
