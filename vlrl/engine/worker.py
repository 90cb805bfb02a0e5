"""What vlrl mixes into vLLM's worker (`worker_extension_cls`)."""

from __future__ import annotations

from vlrl.engine.cpu.routed_experts import ExpertRecorder
from vlrl.engine.cpu.threads import share_large_steps
from vlrl.engine.patches import flatten_videos
from vlrl.engine.weight_receiver import WeightReceiver


class WorkerExtension(WeightReceiver, ExpertRecorder):
    """Receives the trainer's weights; on a CPU it records choices of experts where it is asked to."""

    def correct_model(self) -> None:
        """See `vlrl.engine.patches`, and on a CPU `vlrl.engine.cpu.threads`."""
        flatten_videos(self.model_runner.get_model())
        if self.model_runner.device.type == "cpu":
            share_large_steps(self.model_runner)
