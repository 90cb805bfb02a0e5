"""What training gives: metrics, folder, model, and an evaluation on other rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vlrl.config import Config, parse_config
from vlrl.library.sources import Source, source_of

if TYPE_CHECKING:
    from vlrl.evaluation.result import Evaluation


@dataclass(frozen=True)
class TrainResult:
    """A finished run.

    Attributes:
        config: that it was under.
        summary: of RUN/summary.json: accuracies, seconds by phase, versions.
    """

    config: Config
    summary: Mapping[str, Any]

    @property
    def run_dir(self) -> Path:
        """Folder of the run: `vlrl view` and `vlrl report` take it."""
        return self.config.run_dir

    @property
    def model(self) -> Path:
        """The trained model in Hugging Face format, for transformers, vLLM and another run."""
        return self.run_dir / "model"

    @property
    def metrics(self) -> list[dict[str, Any]]:
        """Metrics of each step by name (docs/reference/metrics.md), with its number as `step`."""
        from vlrl.tracking.sinks import METRICS_FILE, read_metrics

        return read_metrics(self.run_dir / METRICS_FILE)

    def evaluate(self, rows: Source) -> Evaluation:
        """Accuracy of the trained model on rows: the mean of the first reward, greedy and sampled.

        Args:
            rows: as `GRPO` takes them, scored by the run's rewards; all of them are answered.
        """
        from vlrl.evaluate import evaluate_model

        tree = self.config.model_dump(mode="json")
        tree["model"]["path"] = str(self.model)
        tree["data"]["eval"], tree["eval"]["num_samples"] = source_of(rows), None
        return evaluate_model(parse_config(tree, source="evaluate"))
