"""`vlrl sft`."""

from __future__ import annotations

from vlrl.cli.failures import resumable_run
from vlrl.cli.shared import (
    ConfigArgument,
    DebugOption,
    JsonOption,
    OverridesArgument,
    ResumeOption,
    print_result,
)
from vlrl.config import load_config
from vlrl.tracking.console import TrainConsole


def command(
    config: ConfigArgument,
    overrides: OverridesArgument = None,
    resume: ResumeOption = False,
    json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Supervised training on the rows' targets: `vlrl sft configs/quickstart_sft.yaml num_steps=100`."""
    loaded = load_config(config, overrides or [])

    from vlrl import sft
    from vlrl.viewer.pages.report import write_report

    with (
        resumable_run(loaded),
        TrainConsole(f"SFT {loaded.run.name}", loaded.num_steps, json_mode=json) as console,
    ):
        summary = sft.train(loaded, console, resume=resume)
        report = write_report(loaded.run_dir)
        console.note(f"model: {loaded.run_dir / 'model'}")
        console.note(f"report: {report}")
    print_result({**summary, "model": str(loaded.run_dir / "model"), "report": str(report)}, json)
