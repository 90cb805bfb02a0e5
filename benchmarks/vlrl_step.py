"""vlrl's side of train_step.py: the steps of vlrl/grpo.py, told over a pipe how many to run. Not run by hand.

    .venv/bin/python benchmarks/vlrl_step.py JOB.json

Everything is as in `vlrl train configs/quickstart.yaml`, except what makes the two sides' work equal: the
job's model, rows, batch and optimizer; a reward of noise; and a processor without stop tokens, so that every
completion has exactly the job's number of tokens.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

started = time.perf_counter()

from step_job import TALLY, Block, Job, Pipe, noise_reward  # noqa: E402

from vlrl.config import Config, load_config  # noqa: E402
from vlrl.processors.qwen_vl import Qwen25VLProcessor  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
HERE = "benchmarks/vlrl_step.py"
MARGIN = 80
"""Tokens of a prompt besides its images, more than there are."""


class EndlessProcessor(Qwen25VLProcessor):
    """Nothing ends a completion but its length."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.stop_token_ids = ()  # type: ignore[assignment]


async def noise(completion: str, answer: Any, *, trajectory: Any) -> float:
    """The job's reward, and the place where this side's work is counted: async, so it is called in here."""
    reward = noise_reward(completion)
    prompt_tokens = len(trajectory.sample.prompt.token_ids)
    TALLY.add(prompt_tokens, trajectory.num_action_tokens, reward)
    return reward


def make_config(job: Job) -> Config:
    """configs/quickstart.yaml with the job in it, and a longer context where it needs one."""
    case = job.case
    longest = case.images * (case.image_tokens + MARGIN) + MARGIN + case.completion_tokens
    overrides = {
        "run.dir": job.folder,
        "run.name": "vlrl",
        "run.seed": job.seed,
        "model.path": job.model,
        "processor.name": f"{ROOT / HERE}:EndlessProcessor",
        "data.train.options": {
            "num_rows": job.num_rows,
            "num_digits": case.images,
            "image_size": case.image_pixels,
        },
        "data.eval": None,
        "scoring.num_tried": 0,  # noise pays no reference, and nothing ends one
        "rewards.0.name": f"{ROOT / HERE}:noise",
        "num_steps": job.max_steps,
        "rollout.prompts_per_step": case.groups,
        "rollout.group_size": case.group_size,
        "rollout.max_tokens": case.completion_tokens,
        "generator.max_model_len": max(512, longest),
        "algorithm.num_minibatches": 1,
        "optim.lr": job.lr,
        "optim.betas": list(job.betas),
        "optim.max_grad_norm": job.max_grad_norm,
        "optim.schedule": "constant",
        "optim.warmup_steps": 0,
        "eval.every": 0,
        "eval.target_accuracy": None,
        "checkpoint.every": 0,
        "logging.tensorboard": False,  # the other side writes no logs either
        "logging.timeline": job.profiled_step >= 0,
        "profile.steps": [job.profiled_step] if job.profiled_step >= 0 else [],
    }
    return load_config(
        ROOT / "configs/quickstart.yaml", [f"{key}={json.dumps(value)}" for key, value in overrides.items()]
    )


def start_up(run: Any, ray_seconds: float) -> dict[str, float]:
    """Seconds from this process's start to its first step, and of what; engines start side by side."""
    return {
        "total": time.perf_counter() - started,
        "ray": ray_seconds,
        "engines": run.phases.seconds["start engines"],
        "vllm": run.phases.seconds["start vLLM"],
        "trainer": run.phases.seconds["start trainer"],
    }


def main() -> None:
    job = Job.read(sys.argv[1])
    pipe = Pipe()
    config = make_config(job)
    from vlrl.cluster import cluster
    from vlrl.grpo import generate_groups, grpo_step
    from vlrl.run.parity import check_parity
    from vlrl.run.run import Run
    from vlrl.tracking.console import TrainConsole
    from vlrl.tracking.metrics import TIME_PARTS

    begin = time.perf_counter()
    with cluster(config):
        ray_seconds = time.perf_counter() - begin
        console = TrainConsole("vlrl", config.num_steps, json_mode=True)
        with console, Run(config, console, train=True, generate=True) as run:
            run.collect(generate_groups)
            check_parity(run)
            pipe.send(start_up=start_up(run, ray_seconds))
            block = Block(pipe.next_block())
            for step in run.steps("GRPO"):
                metrics = grpo_step(run, step)
                run.log(step, metrics)
                phases = {name: metrics[f"time_s/{name}"] for name in TIME_PARTS if name != "wait"}
                if block.end_step(phases, rest="wait"):
                    pipe.send(block=block.as_dict())
                    block = Block(pipe.next_block())
                    if not block.steps:
                        break


if __name__ == "__main__":
    main()
