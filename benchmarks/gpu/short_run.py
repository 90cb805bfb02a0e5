"""A few steps of the quickstart's GRPO on a random model, for the stages that need engines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from step_job import noise_reward

ROOT = Path(__file__).resolve().parents[2]
OVERRIDES = (
    "data.eval=null",
    "eval.every=0",
    "eval.target_accuracy=null",
    f"rewards=[{{name: '{__file__}:noise'}}]",
)


def noise(completion: str, answer: Any) -> float:
    """A reward that differs between all texts, so that a model that knows nothing is moved too."""
    return noise_reward(completion)


def build_model(folder: Path, **sizes: int) -> Path:
    """A random Qwen2.5-VL that can spell the digit task."""
    from vlrl.envs.visual.questions.digit_sum import DigitSum
    from vlrl.model.tiny import build_tiny_qwen2_5_vl

    return build_tiny_qwen2_5_vl(folder, DigitSum().corpus(), **sizes)


def config_of(model: Path, folder: Path, name: str, *overrides: str) -> Any:
    """The quickstart's config for a short run; `overrides` as on the command line."""
    from vlrl.config import load_config

    own = (f"run.dir={folder}", f"run.name={name}", f"model.path={model}")
    return load_config(ROOT / "configs" / "quickstart.yaml", [*own, *OVERRIDES, *overrides])


def short_run(config: Any) -> tuple[dict[str, Any], list[Any]]:
    """Train; engine and trainer must agree before the first step and on every batch (law 5).

    Returns:
        (the summary, the metrics of each step).

    Raises:
        VlrlError: if they disagree, or anything else fails.
    """
    from vlrl import grpo
    from vlrl.tracking.console import TrainConsole
    from vlrl.tracking.sinks import METRICS_FILE, read_metrics

    with TrainConsole(config.run.name, config.num_steps, json_mode=True) as console:
        summary = grpo.train(config, console)
    return summary, read_metrics(config.run_dir / METRICS_FILE)
