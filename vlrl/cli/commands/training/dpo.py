"""`vlrl dpo`."""

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
    """Preference learning on rows: `vlrl dpo my.yaml preferences.loss=ipo`; also kto."""
    loaded = read_config(config, overrides)

    from vlrl import preferences

    run_page("DPO", loaded, lambda console: preferences.train(loaded, console, resume=resume), json)
