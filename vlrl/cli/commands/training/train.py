"""`vlrl train`."""

from __future__ import annotations

from vlrl.cli.failures import resumable_run
from vlrl.cli.shared import (
    ConfigArgument,
    DebugOption,
    JsonOption,
    OverridesArgument,
    ResumeOption,
    print_result,
    read_config,
)
from vlrl.errors import VlrlError
from vlrl.tracking.console import TrainConsole


class TargetMissed(VlrlError):
    """The run ended well, but below the accuracy its config promised."""


def command(
    config: ConfigArgument,
    overrides: OverridesArgument = None,
    resume: ResumeOption = False,
    json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Train a model with GRPO: `vlrl train configs/quickstart.yaml run.name=mine optim.lr=1e-4`."""
    loaded = read_config(config, overrides)

    announced = TrainConsole(f"GRPO {loaded.run.name}", loaded.num_steps, json_mode=json).announce()

    from vlrl import grpo
    from vlrl.viewer.pages.report import write_report

    with resumable_run(loaded), announced as console:
        summary = grpo.train(loaded, console, resume=resume)
        report = write_report(loaded.run_dir)
        console.note(f"report: {report}")
    print_result({**summary, "report": str(report)}, json)
    require_target(summary)


def require_target(summary: dict[str, object]) -> None:
    """Raise TargetMissed if the run's config set a target that was not reached."""
    if summary.get("target_reached") is False:
        raise TargetMissed(
            f"greedy held-out accuracy is {summary['heldout_accuracy_after']:.3f}, below the "
            f"eval.target_accuracy of {summary['target_accuracy']}; raise num_steps, or see the report"
        )
