"""What vlrl mixes into vLLM's worker (`worker_extension_cls`)."""

from __future__ import annotations

from vlrl.engine.cpu.routed_experts import ExpertRecorder
from vlrl.engine.weight_receiver import WeightReceiver


class WorkerExtension(WeightReceiver, ExpertRecorder):
    """Receives the trainer's weights; on a CPU it records choices of experts where it is asked to."""
