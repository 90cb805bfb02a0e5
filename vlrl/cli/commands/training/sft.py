"""`vlrl sft`."""

from __future__ import annotations

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
    resume: ResumeOption = False,
    json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Supervised training on the rows' targets: `vlrl sft configs/quickstart_sft.yaml num_steps=100`."""
    loaded = read_config(config, overrides)

    def open_page() -> TrainFn:
        from vlrl import sft

        return lambda console: sft.train(loaded, console, resume=resume)

    run_page("SFT", loaded, open_page, json)
