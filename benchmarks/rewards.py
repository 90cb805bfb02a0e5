"""How many simple scores a second the reward pool gives, and what it costs over calling the function.

    python benchmarks/rewards.py --json

A "simple score" is `answer_exact` on a think/answer completion of 400 characters, groups of 8. Measured: the
plain function in a loop; the same with what training does around it (context by name, checks, composing a
`Score`), in this process; and through the pool with 1 and 2 workers. Target: 20,000 a second on 2 cores.
Also the worst case of the limits: a step of 256 completions, two of which hang.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from vlrl.config.options import RewardConfig, ScoringConfig
from vlrl.foreign.runner import result_of
from vlrl.process.json_stdout import parse_with_json, print_figures
from vlrl.rewards.text.exact import answer_exact
from vlrl.rollout.session import Session
from vlrl.scoring.compose import ComposedReward, RewardFailure
from vlrl.types import Generation, Prompt, Sample, Trajectory, VersionSpan

TARGET_PER_S = 20_000.0
GROUP = 8
THOUGHT = "The bar of 2019 is the highest of the four, so its year is the answer. "


def trajectories(count: int) -> list[Trajectory]:
    """Groups of 8 answers to one question each, half of them right."""
    ids = np.arange(4, dtype=np.int64)
    prompt = Prompt(ids, ids, np.tile(ids, (3, 1)), 4)
    out = []
    for index in range(count):
        if index % GROUP == 0:
            messages = ({"role": "user", "content": "Which year?"},)
            sample = Sample(f"s{index}", messages, (), prompt, answer="2019", metadata={"level": 3})
        session = Session(sample, index % GROUP)
        session.append_action(Generation(ids, np.zeros(4, np.float32), (VersionSpan(0, 0, 4),), True))
        text = f"<think>{THOUGHT * 5}</think><answer>{2019 + index % 2}</answer>"
        out.append(session.trajectory(text, "ok", 0.0))
    return out


def per_second(reward: ComposedReward, scored: Sequence[Trajectory], repeats: int) -> float:
    """Best of `repeats` passes, after one that starts the workers."""
    with asyncio.Runner() as runner:
        runner.run(reward.score_all(scored[:64]))
        times = []
        for _ in range(repeats):
            begin = time.perf_counter()
            scores = result_of(runner, reward.score_all(scored))
            times.append(time.perf_counter() - begin)
        assert sum(score.total for score in scores if not isinstance(score, RewardFailure)) == len(scored) / 2
    reward.close()
    return len(scored) / min(times)


def with_hangs() -> dict[str, float]:
    """Seconds of a pass in which two of 256 completions hang, under a limit of 1 s."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "hangs.py"
        file.write_text(
            "import re\n"
            "def hangs(completion, answer):\n"
            "    return float(bool(re.match('(a+)+$', 'a' * 60 + 'b' if 'HANG' in completion else 'a')))\n"
        )
        scored = trajectories(256)
        scored[17].completion = scored[200].completion = "HANG"
        limits = ScoringConfig(num_workers=2, timeout_s=1.0)
        with ComposedReward([RewardConfig(name=f"{file}:hangs")], scoring=limits) as reward:
            begin = time.perf_counter()
            results = asyncio.run(reward.score_all(scored))
            seconds = time.perf_counter() - begin
    failed = [result for result in results if isinstance(result, RewardFailure)]
    return {"num_failed": len(failed), "seconds": seconds}


def measure(count: int, repeats: int) -> dict[str, Any]:
    scored = trajectories(count)
    begin = time.perf_counter()
    for each in scored:
        answer_exact(each.completion, each.sample.answer)
    direct = count / (time.perf_counter() - begin)
    config = [RewardConfig(name="answer_exact")]
    inline = per_second(ComposedReward(config, inline=True), scored, repeats)
    pooled = {
        workers: per_second(
            ComposedReward(config, scoring=ScoringConfig(num_workers=workers)), scored, repeats
        )
        for workers in (1, 2)
    }
    best = max(pooled.values())
    return {
        "num_scores": count,
        "cores": len(os.sched_getaffinity(0)),
        "load": os.getloadavg()[0],
        "function_alone_per_s": round(direct),
        "composed_in_process_per_s": round(inline),
        "pool_1_worker_per_s": round(pooled[1]),
        "pool_2_workers_per_s": round(pooled[2]),
        "overhead_us_per_score": round(1e6 / best - 1e6 / direct, 1),
        "hangs": with_hangs(),
        "target_per_s": TARGET_PER_S,
        "target_reached": best >= TARGET_PER_S,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--num-scores", type=int, default=40_000)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parse_with_json(parser)
    found = measure(arguments.num_scores, arguments.repeats)
    print_figures(found, arguments.json)


if __name__ == "__main__":
    main()
