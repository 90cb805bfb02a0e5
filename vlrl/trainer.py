"""The trainer: ZeRO-3 ranks driven as one, from the driver's side."""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np

from vlrl import cluster
from vlrl.batch import Batch
from vlrl.config import Config
from vlrl.errors import EngineError, ResourceError
from vlrl.trainer_rank import Objective, StepResult, StepSums, TrainerRank
from vlrl.types import FloatArray
from vlrl.weights import Manifest, create_segment, plan_segment


class Trainer:
    """All ranks as one: the driver's side."""

    def __init__(self, config: Config, banned_token_ids: Sequence[int]) -> None:
        self._config = config
        ranks = config.trainer.num_ranks
        master = ("127.0.0.1", rendezvous_port(config.trainer.master_port))
        env = {"OMP_NUM_THREADS": str(cluster.num_threads(config, num_processes=ranks))}
        if not cluster.gpu_available():
            env["DS_ACCELERATOR"] = "cpu"
        self._ranks = [
            cluster.spawn(
                TrainerRank,
                config,
                tuple(banned_token_ids),
                rank,
                master,
                num_cpus=config.trainer.cpus_per_rank,
                num_gpus=config.trainer.gpus_per_rank,
                env=env,
            )
            for rank in range(ranks)
        ]
        self._starting = [rank.start.remote() for rank in self._ranks]
        self._manifest: Manifest | None = None

    def wait_ready(self) -> float:
        """Block until every rank has its model and the weight segment exists; seconds of the slowest."""
        seconds = max(float(s) for s in cluster.fetch_all(self._starting))
        path = Path("/dev/shm") / f"vlrl-weights-{os.getpid()}-{uuid4().hex[:8]}"
        self._manifest = plan_segment(path, cluster.call(self._ranks[:1], "parameters")[0])
        create_segment(self._manifest)
        cluster.call(self._ranks, "attach", [self._manifest] * len(self._ranks))
        self.write_weights()
        return seconds

    @property
    def manifest(self) -> Manifest:
        """Layout of the weight segment, after wait_ready."""
        if self._manifest is None:
            raise EngineError("Trainer.wait_ready() has not been called")
        return self._manifest

    @property
    def num_parameters(self) -> int:
        """Parameters of the policy, tied ones once."""
        return sum(int(np.prod(e.shape)) for e in self.manifest.entries)

    def step(self, batch: Batch, objective: Objective, lr: float) -> tuple[dict[str, float], float, str]:
        """One optimizer step.

        Args:
            batch: [num_ranks][num_micro_batches].
            objective: "grpo" or "sft".
            lr: learning rate of this step.

        Returns:
            (metrics, largest |trainer - sampler| logprob in nats, the sample it was in).
        """
        n = len(self._ranks)
        results: list[StepResult] = cluster.call(self._ranks, "step", batch, [objective] * n, [lr] * n)
        sums = sum((r.sums for r in results), StepSums())
        tokens = max(1, sums.num_tokens)
        metrics = {"policy/loss": sums.loss, "optim/grad_norm": results[0].grad_norm, "optim/lr": lr}
        if objective == "grpo" and sums.num_tokens:  # none, if every group's rewards were equal
            metrics |= {
                "policy/entropy": sums.entropy / tokens,
                "policy/kl": sums.kl / tokens,
                "policy/clip_fraction": sums.num_clipped / tokens,
            }
            if self._config.algorithm.kl_coef > 0:
                metrics["policy/kl_reference"] = sums.kl_reference / tokens
        worst = max(results, key=lambda r: r.max_logprob_diff)
        return metrics, worst.max_logprob_diff, worst.worst_sample_id

    def logprobs(self, batch: Batch) -> list[list[FloatArray]]:
        """Trainer logprobs, [num_ranks][num_micro_batches] of [M] float32."""
        return cluster.call(self._ranks, "logprobs", batch)

    def write_weights(self) -> None:
        """Bring the segment up to date."""
        cluster.call(self._ranks, "write_weights")

    def save(self, folder: Path) -> None:
        """Write model/ (Hugging Face format) and state/ (one slice a rank) under `folder`.

        Raises:
            ResourceError: if the disk is full.
        """
        self.save_model(folder / "model")
        self._save("save_state", self._ranks, folder / "state")

    def save_model(self, folder: Path) -> None:
        """Write the weights alone, in Hugging Face format.

        Raises:
            ResourceError: if the disk is full.
        """
        self.write_weights()
        self._save("save_model", self._ranks[:1], folder)

    def load(self, folder: Path) -> None:
        """Read the state that `save` wrote and bring the segment up to date."""
        cluster.call(self._ranks, "load_state", [str(folder / "state")] * len(self._ranks))
        self.write_weights()

    def _save(self, method: str, ranks: Sequence[Any], folder: Path) -> None:
        try:
            cluster.call(ranks, method, [str(folder)] * len(ranks))
        except EngineError as error:
            # safetensors and the system say so in words; torch only counts the bytes that are missing.
            words = ("No space left", "Disk quota", "unexpected pos", "failed writing file")
            if any(word in str(error) for word in words):
                raise ResourceError(
                    f"the disk is full: {folder} could not be written; free some space, or set run.dir to "
                    "another disk; the checkpoints before it are whole"
                ) from error
            raise

    def close(self) -> None:
        """Stop the ranks and free the segment."""
        cluster.stop(self._ranks)
        if self._manifest is not None:
            Path(self._manifest.path).unlink(missing_ok=True)


def rendezvous_port(wanted: int | None) -> int:
    """A free port, or the wanted one.

    Raises:
        ResourceError: if the wanted port is in use.
    """
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", wanted or 0))
        except OSError as error:
            raise ResourceError(
                f"trainer.master_port={wanted} is in use ({error.strerror}); give another, or null for any"
            ) from error
        return int(probe.getsockname()[1])
