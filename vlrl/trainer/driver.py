"""The trainer: ZeRO-3 ranks driven as one, from the driver's side."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from vlrl import cluster
from vlrl.algorithm.differences import LogprobDifferences
from vlrl.algorithm.ordered import ENVIRONMENT
from vlrl.batch import Batch, StepBatch, StoredBatch, TokenValues, num_targets, parts_of
from vlrl.choices import MachineChoice, merged
from vlrl.config import Config
from vlrl.errors import EngineError
from vlrl.model.lora import sent_alone
from vlrl.placement.layout import servers_are_here
from vlrl.process.heap import REUSED_MEMORY
from vlrl.storage.shared_folder import SharedFile, naming_full_disk, require_seen
from vlrl.trainer.objective import Objective, accounted
from vlrl.trainer.offload import OffloadFolder, require_disk_access, with_folder
from vlrl.trainer.rank import TrainerRank
from vlrl.trainer.result import RankStepResult, StepSums, optimizer_metrics
from vlrl.types import FloatArray
from vlrl.weights.keepers import keepers_of
from vlrl.weights.manifest import Checksum, Manifest, plan_segment
from vlrl.weights.places import WeightPlaces

DEATH_MESSAGE_S = 10.0
"""A rank that does not say in so long that it lives is at work, or waits for one that does not."""


class Trainer:
    """All ranks as one: the driver's side."""

    def __init__(
        self,
        config: Config,
        banned_token_ids: Sequence[int],
        reservation: cluster.Reservation | None = None,
        *,
        shared_file: Path | None = None,
    ) -> None:
        """Start the ranks, which load the model in the background; `wait_ready` waits for them.

        Args:
            config: the run's.
            banned_token_ids: never to be generated (law 3).
            reservation: of the ranks' places; without one they are on this node.
            shared_file: in the run's folder, for the ranks to find there.
        """
        folder = config.trainer.offload_dir
        if folder is not None and config.ray.address is None:  # else the ranks may be on other machines
            require_disk_access(cluster.gpu_available())
        self._offload = OffloadFolder(folder) if folder is not None else None
        if self._offload is not None:
            config = with_folder(config, self._offload)
        self._config = config
        num_ranks = config.trainer.world_size
        here = cluster.driver_place(num_ranks, config.trainer.cpus_per_rank)
        self._reservation = reservation
        self._rank_places = reservation.ranks if reservation else [here] * num_ranks
        master = cluster.meeting_point(self._rank_places, config.trainer.master_port)
        node_ids = [place.node_id for place in self._rank_places]
        ordered = ENVIRONMENT if config.trainer.deterministic else {}
        env = {name: os.environ.get(name, value) for name, value in ordered.items()}
        self._ranks = [
            cluster.spawn(
                TrainerRank,
                config,
                tuple(banned_token_ids),
                rank,
                master,
                [node_ids.index(node_id) for node_id in node_ids],
                place=place,
                env=env if place.gpus else {**env, "DS_ACCELERATOR": "cpu", **REUSED_MEMORY},
            )
            for rank, place in enumerate(self._rank_places)
        ]
        shared = SharedFile.written_to(shared_file) if shared_file is not None else None
        self._starting = cluster.begin(self._ranks, "start", [shared] * num_ranks)
        self._places: WeightPlaces | None = None
        self._sending: list[Any] = []
        self._written = self._has_gradients = False
        self._values: list[TokenValues] = []
        self._adapters_alone = sent_alone(config) is not None

    def wait_ready(self) -> float:
        """Block until every rank has its model and the weight segment exists; seconds of the slowest."""
        seconds = max(float(s) for s in cluster.fetch_all(self._starting))
        self._layout = sent = cluster.call(self._ranks[:1], "parameters")[0]
        if self._adapters_alone:
            sent = cluster.call(self._ranks[:1], "adapters")[0]
        keepers = keepers_of(self._rank_places)
        self._places = WeightPlaces(self._config, sent, self._broadcast_address(), keepers)
        takes_turns = self._reservation is not None and self._reservation.layout.takes_turns
        if self.manifest.transport == "shared_memory" or takes_turns:  # engines that wake up ask for weights
            self.write_weights()
        return seconds

    def _broadcast_address(self) -> str:
        """Where rank 0 meets the engines, if weights are broadcast."""
        places = [self._rank_places[0], *(self._reservation.engines if self._reservation else [])]
        host, port = cluster.meeting_point(places, with_others=not servers_are_here(self._config))
        return f"{host}:{port}"

    def sleep(self) -> None:
        """Give the GPUs' memory up for the engines; until `wake` only `manifest` and `close` may be used."""
        cluster.call(self._ranks, "sleep")

    def wake(self) -> None:
        """Take the GPUs' memory back."""
        cluster.call(self._ranks, "wake")

    @property
    def manifest(self) -> Manifest:
        """The weights that were written last, for `VllmPolicy.load_weights`; after wait_ready."""
        if self._places is None:
            raise EngineError("Trainer.wait_ready() has not been called")
        return self._places.current

    @property
    def num_ranks(self) -> int:
        """How many ranks there are."""
        return len(self._ranks)

    @property
    def num_parameters(self) -> int:
        """Parameters and buffers of the policy's file without adapters, tied ones once; after wait_ready."""
        return sum(int(np.prod(shape)) for _, _, shape in self._layout)

    def choices(self) -> list[MachineChoice]:
        """What the ranks chose for their machines, and why; once what all of them chose alike."""
        return merged(cluster.call(self._ranks, "choices"), "rank")

    def step(
        self, batch: StepBatch, objective: Objective, lr: float
    ) -> tuple[dict[str, float], LogprobDifferences]:
        """One optimizer step; none if no rank has a trained token.

        Args:
            batch: [num_ranks][num_micro_batches], or where they lie.
            objective: what is minimised.
            lr: learning rate of this step.

        Returns:
            (metrics, |trainer - sampler| logprobs of fresh tokens).
        """
        if not num_targets(batch):
            # Moments and weight decay would move the weights by what earlier steps saw; no rank is asked.
            return {"policy/loss": 0.0, **optimizer_metrics([], lr)}, LogprobDifferences()
        results = self._results("step", [(part, objective, lr, *frames) for part, *frames in parts_of(batch)])
        metrics, differences = accounted(results, objective, self._config)
        return metrics | optimizer_metrics(results, lr), differences

    def accumulate(
        self, batch: StepBatch, objective: Objective
    ) -> tuple[dict[str, float], LogprobDifferences]:
        """Add a batch's gradients to those since the last `update`; metrics and differences as of `step`."""
        if not num_targets(batch):
            return {"policy/loss": 0.0}, LogprobDifferences()
        parts = [(part, objective, *frames) for part, *frames in parts_of(batch)]
        return accounted(self._results("accumulate", parts), objective, self._config)

    def update(self, lr: float) -> dict[str, float]:
        """The optimizer's step along what `accumulate` has added up: its metrics; none as for `step`."""
        results = self._results("update", [(lr,)] * len(self._ranks)) if self._has_gradients else []
        return optimizer_metrics(results, lr)

    def _results(self, method: str, parts: Sequence[tuple[Any, ...]]) -> list[RankStepResult]:
        self._written, self._has_gradients = False, method == "accumulate"
        results: list[RankStepResult] = cluster.fetch_all(cluster.begin_with(self._ranks, method, parts))
        self._values += [result.values for result in results if result.values is not None]
        return results

    def take_token_values(self) -> TokenValues:
        """What ranks computed of tokens since this was called last, where origins are known."""
        values, self._values = self._values, []
        return TokenValues.joined(values)

    def measure(self, batch: StepBatch, objective: Objective) -> StepSums:
        """The sums of a step that is not taken: of held-out pairs, or to set an objective's constants."""
        parts = [(part, objective, *frames) for part, *frames in parts_of(batch)]
        return sum(cluster.fetch_all(cluster.begin_with(self._ranks, "measure", parts)), StepSums())

    def with_proximal(self, batches: Iterable[StepBatch]) -> list[StepBatch]:
        """The batches of a step; those after the first one with the present weights' logprobs noted.

        The ranks compute and keep these in the order of the calls, so before the first step changes a weight.
        """
        packed = list(batches)
        for number, batch in enumerate(packed[1:], start=1):
            parts = parts_of(batch)
            noted = cluster.begin_with(self._ranks, "with_proximal", parts)
            frames = tuple(tuple(of_rank) for _, *of_rank in parts)
            packed[number] = StoredBatch(tuple(noted), frames, num_targets(batch))
        return packed

    def logprobs(self, batch: Batch) -> list[list[FloatArray]]:
        """Trainer logprobs, [num_ranks][num_micro_batches] of [M] float32."""
        return cluster.call(self._ranks, "logprobs", batch)

    def refresh_copies(self, step: int) -> None:
        """Take the copies of policies (`policies.NAME.every`) that are due before a step, counted from 0."""
        if any(policy.every is not None for policy in self._config.policies.values()):
            self._written = False
            cluster.call(self._ranks, "refresh_copies", [step] * len(self._ranks))

    def write_weights(self, *, checked: bool = False) -> None:
        """Write the weights as a new version, which `manifest` names from now on.

        With `checked`, or weights.checksums, engines compare every byte that they read. A broadcast has no
        place to be written to: it begins here and ends when the engines load it.

        Raises:
            EngineError: if it takes longer than weights.timeout_s.
        """
        if self._places is None:
            raise EngineError("Trainer.wait_ready() has not been called")
        place = replace(self._places.next(), checked=checked or self._config.weights.checksums)
        self._finish_sending()  # of the version before
        self._sending = cluster.begin(self._ranks, "write_weights", [place] * len(self._ranks))
        checksums = [] if place.transport == "broadcast" else self._finish_sending()
        self._places.written(place, checksums)
        self._written = True

    def _finish_sending(self) -> list[Checksum]:
        timeout_s = self._config.weights.timeout_s
        late = (
            f"the trainer has not sent its weights after weights.timeout_s={timeout_s:g}; raise it for a "
            "large model on slow storage, else a collective hangs: the ranks' logs are under "
            f"{cluster.logs_folder()}"
        )
        sending, self._sending = self._sending, []
        of_ranks = cluster.fetch_all(sending, timeout_s=timeout_s, late=late)
        return [checksum for of_rank in of_ranks for checksum in of_rank]

    def save(self, folder: Path) -> dict[str, int]:
        """Write model/ (Hugging Face format) and state/ (one slice a rank) under `folder`.

        Returns:
            The size in bytes of every file that a rank wrote, by its path below `folder`.

        Raises:
            ResourceError: if the disk is full.
            ConfigError: if a rank wrote where the driver does not see it.
        """
        parts = {
            "model": self.save_model(folder / "model"),
            "state": self._save("save_state", folder / "state"),
        }
        return {f"{part}/{name}": size for part, sizes in parts.items() for name, size in sizes.items()}

    def save_model(self, folder: Path) -> dict[str, int]:
        """Write the weights alone, in Hugging Face format; returns and raises as `save`."""
        whole = self.manifest
        if self._adapters_alone:  # what was sent is not the model: that is gathered, bucket by bucket
            whole = replace(
                plan_segment(folder, self._layout), transport="disk", bucket_bytes=whole.bucket_bytes
            )
        elif whole.transport == "shared_memory" and not self._written:
            self.write_weights()
            whole = self.manifest
        return self._save("save_model", folder, whole)

    def load(self, folder: Path) -> list[str]:
        """Read the state that `save` wrote; `write_weights` sends its weights.

        Returns:
            What the config has changed of the optimizer since then, in words: the config's options hold.
        """
        changes: list[list[str]] = cluster.call(
            self._ranks, "load_state", [str(folder / "state")] * len(self._ranks)
        )
        self._written = False
        return changes[0]

    def _save(self, method: str, folder: Path, *arguments: Any) -> dict[str, int]:
        with naming_full_disk(folder):
            values = (str(folder), *arguments)
            written = cluster.call(self._ranks, method, *([value] * len(self._ranks) for value in values))
        return require_seen(folder, written)

    def death_message(self) -> str:
        """Which rank's process is gone, in words; "" if none is."""
        gone = cluster.dead(self._ranks, timeout_s=DEATH_MESSAGE_S)
        return f"the process of trainer rank {gone[0]} of {len(self._ranks)} has died" if gone else ""

    def close(self) -> None:
        """Stop the ranks and free the weights' places."""
        cluster.stop(self._ranks)
        if self._offload is not None:
            self._offload.close()
        if self._places is not None:
            self._places.close()
