"""`vlrl reward-model`."""

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
    """Train a reward model on rows of pairs: `vlrl reward-model my.yaml preferences.loss=bradley_terry`.

    RUN/model is a sequence classifier of transformers and of vLLM, which `classifier` uses as a reward.
    """
    loaded = read_config(config, overrides)

    def open_page() -> TrainFn:
        from vlrl import preferences

        return lambda console: preferences.train_reward_model(loaded, console, resume=resume)

    run_page("reward model", loaded, open_page, json)
