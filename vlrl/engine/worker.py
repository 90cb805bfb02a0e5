"""What vlrl mixes into vLLM's worker (`worker_extension_cls`)."""

from __future__ import annotations

from vlrl.engine.cpu.routed_experts import ExpertRecorder
from vlrl.engine.patches import flatten_videos
from vlrl.engine.weight_receiver import WeightReceiver


class WorkerExtension(WeightReceiver, ExpertRecorder):
    """Receives the trainer's weights; on a CPU it records choices of experts where it is asked to."""

    def correct_model(self) -> None:
        """See `vlrl.engine.patches`."""
        flatten_videos(self.model_runner.get_model())
