"""`vlrl rollout`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vlrl.cli.shared import (
    ConfigArgument,
    DebugOption,
    JsonOption,
    OverridesArgument,
    print_result,
    read_config,
)
from vlrl.tracking.console import TrainConsole


def command(
    config: ConfigArgument,
    overrides: OverridesArgument = None,
    out: Annotated[
        Path | None, typer.Option(help="JSONL file to write; RUN/rollouts/rollout.jsonl if not given.")
    ] = None,
    json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Generate and score one batch: `vlrl rollout configs/quickstart.yaml --out out.jsonl`."""
    loaded = read_config(config, overrides)

    from vlrl.algorithm.credit import assign_credit
    from vlrl.config.learning.policies import require_one_policy
    from vlrl.rollout.groups import rollout_groups, score_groups
    from vlrl.run.players.player import masks_of
    from vlrl.run.run import Run
    from vlrl.tracking.group_numbers import numbers_of
    from vlrl.tracking.rollouts.records import images_of, rollout_records, write_rollouts
    from vlrl.tracking.stats import episode_stats, rollout_stats

    require_one_policy(loaded, "vlrl rollout")
    path = out or loaded.run_dir / "rollouts" / "rollout.jsonl"
    with (
        TrainConsole(f"rollout {loaded.model.path}", 1, json_mode=json) as console,
        Run(loaded, console, train=False, generate=True) as run,
    ):
        console.phase("generating")
        seed_path = (loaded.run.seed, 0)
        beside = loaded.algorithm.has_greedy_baseline
        rollouts = run.runner.run(
            rollout_groups(run.first_samples, run.context, seed_path=seed_path, greedy_beside=beside)
        )
        groups = rollouts.groups
        failures = run.runner.run(score_groups(groups, run.reward.score_all))
        assign_credit(groups, loaded.algorithm, masks_of(loaded))
        records = rollout_records(groups, run.processor, phase="rollout", step=0)
        write_rollouts(path, records, images_of(groups))
        numbers = numbers_of(groups)
        stats = rollout_stats(numbers, failures) | episode_stats(numbers, rollouts.counts)
        console.note(f"{len(records)} rollouts, mean reward {stats['reward/mean']:.3f}: {path}")
    print_result(
        {
            "path": str(path),
            "num_rollouts": len(records),
            "failures": [str(f) for f in failures[:10]],
            **stats,
        },
        json,
    )
