"""Observations a second and core of every visual environment.

    python benchmarks/envs.py [--json] [--size 224] [--only visual/charts …]

Of an environment that asks one question, an observation is a `reset`; of others a `step` by the oracle, with
random actions mixed in, drawn image and all. Time is the process's own (`time.process_time`), so another
program on the machine changes it little. Given are the mean over the levels and the slowest level; for those
of several steps also resets a second, and for videos frames a second. Target: 500 at 224×224.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

from vlrl.environment.open import open_env
from vlrl.envs.visual.question import QuestionEnv
from vlrl.process.json_stdout import parse_with_json, print_json
from vlrl.registry import BUILT_IN

TARGET_PER_S = 500.0
RANDOM_SHARE = 0.3
"""Of a step's actions: an oracle alone goes through few states."""


def measure(env: Any, level: int, seconds: float) -> tuple[int, float, int, float, int]:
    """(observations, seconds they took, resets, seconds they took, frames) of one level."""
    rng, asks = np.random.default_rng(0), isinstance(env, QuestionEnv)
    num_steps = num_resets = num_frames = 0
    step_s = reset_s = 0.0
    seed = 0
    while (reset_s if asks else step_s) < seconds and reset_s < 4 * seconds:
        begin = time.process_time()
        observation = env.reset({"level": level}, seed)
        reset_s += time.process_time() - begin
        num_resets, seed = num_resets + 1, seed + 1
        num_frames += len(observation.images) + sum(len(video.frames) for video in observation.videos)
        while not asks and step_s < seconds:
            action = env.random_action(rng) if rng.random() < RANDOM_SHARE else env.oracle()
            begin = time.process_time()
            result = env.step(action)
            step_s += time.process_time() - begin
            num_steps += 1
            if result.terminated or result.truncated:
                break
    if asks:
        return num_resets, reset_s, num_resets, reset_s, num_frames
    return num_steps, step_s, num_resets, reset_s, num_steps


def figures(name: str, size: int, seconds: float) -> dict[str, Any]:
    env: Any = open_env(name, {"image_size": size})
    env.reset({}, 0)  # loads fonts and the like
    levels = [measure(env, level, seconds) for level in range(1, env.num_levels + 1)]
    rates = [count / spent for count, spent, *_ in levels]
    slowest = int(np.argmin(rates))
    return {
        "observations_per_s": round(sum(level[0] for level in levels) / sum(level[1] for level in levels)),
        "slowest_level": slowest + 1,
        "slowest_per_s": round(rates[slowest]),
        "resets_per_s": round(sum(level[2] for level in levels) / sum(level[3] for level in levels)),
        "frames_per_s": round(sum(level[4] for level in levels) / sum(level[1] for level in levels)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--size", type=int, default=224, help="side of an image in pixels")
    parser.add_argument("--seconds", type=float, default=0.4, help="measured of each level")
    parser.add_argument("--only", nargs="*", default=[], help="names of environments")
    args = parse_with_json(parser)
    names = args.only or sorted(name for name in BUILT_IN["envs"] if name.startswith("visual/"))
    found = {name: figures(name, args.size, args.seconds) for name in names}
    if args.json:
        print_json({"image_size": args.size, "target_per_s": TARGET_PER_S, "envs": found})
        return
    print(f"{'':24}{'obs/s':>8}{'slowest level':>16}{'resets/s':>10}{'frames/s':>10}")
    for name, figure in found.items():
        slowest = f"{figure['slowest_per_s']} (level {figure['slowest_level']})"
        print(
            f"{name:24}{figure['observations_per_s']:>8}{slowest:>16}"
            f"{figure['resets_per_s']:>10}{figure['frames_per_s']:>10}"
        )


if __name__ == "__main__":
    main()
