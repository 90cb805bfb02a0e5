"""`vlrl sft`."""

from __future__ import annotations

from vlrl.cli.commands.training.pages import run_page
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

    from vlrl import sft

    run_page("SFT", loaded, lambda console: sft.train(loaded, console, resume=resume), json)
