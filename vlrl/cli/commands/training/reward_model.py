"""`vlrl reward-model`."""

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
    """Train a reward model on rows of pairs: `vlrl reward-model my.yaml preferences.loss=bradley_terry`.

    RUN/model is a sequence classifier of transformers and of vLLM, which `classifier` uses as a reward.
    """
    loaded = read_config(config, overrides)

    from vlrl import preferences

    run_page(
        "reward model",
        loaded,
        lambda console: preferences.train_reward_model(loaded, console, resume=resume),
        json,
    )
