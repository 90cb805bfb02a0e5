"""Where a run's numbers go: metrics.jsonl always, TensorBoard, W&B, trackio and MLflow by option."""

from vlrl.tracking.sinks.all_sinks import MetricSinks
from vlrl.tracking.sinks.metrics_file import METRICS_FILE, MetricsFile, drop_from_step, read_metrics

__all__ = ["METRICS_FILE", "MetricSinks", "MetricsFile", "drop_from_step", "read_metrics"]
