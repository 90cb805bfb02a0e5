"""`vlrl raft`."""

from __future__ import annotations

from typing import Annotated

import typer

from vlrl.cli.commands.training.pages import TrainFn, run_page
from vlrl.cli.shared import (
    ConfigArgument,
    DebugOption,
    JsonOption,
    OverridesArgument,
    ResumeOption,
    read_config,
)


def command(
    config: ConfigArgument,
    overrides: OverridesArgument = None,
    prompts: Annotated[
        int | None,
        typer.Option(min=1, help="Rows to generate for; default: rollout.prompts_per_step."),
    ] = None,
    min_reward: Annotated[
        float | None, typer.Option(help="Least reward of a completion that is kept; default: any.")
    ] = None,
    best_of: Annotated[int, typer.Option(min=1, help="Completions kept of a prompt, the best ones.")] = 1,
    resume: ResumeOption = False,
    json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Rejection sampling, then SFT on the best: `vlrl raft my.yaml --prompts 2048 --min-reward 1`.

    It is `vlrl rollout` and `vlrl sft` in one: rollout.group_size completions of each prompt, of which the
    best by reward are the targets. The rollouts stay in RUN/rollouts/raft.jsonl.
    """
    loaded = read_config(config, overrides)

    def open_page() -> TrainFn:
        from vlrl import raft

        chosen = raft.Rejection(prompts or loaded.rollout.prompts_per_step, min_reward, best_of)
        return lambda console: raft.train(loaded, console, rejection=chosen, resume=resume)

    run_page("RAFT", loaded, open_page, json)
