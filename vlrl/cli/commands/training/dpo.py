"""`vlrl dpo`."""

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
    """Preference learning on rows: `vlrl dpo my.yaml preferences.loss=ipo`; also kto."""
    loaded = read_config(config, overrides)

    def open_page() -> TrainFn:
        from vlrl import preferences

        return lambda console: preferences.train(loaded, console, resume=resume)

    run_page("DPO", loaded, open_page, json)
