"""The engine's side of a weight update: mixed into vLLM's worker, whatever the transport."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from vlrl.config.memory import LoraConfig
from vlrl.engine.lora import AdapterSlots
from vlrl.errors import EngineError
from vlrl.model.hf_names import PublishedLayout
from vlrl.weights.completeness import all_loaded, require_whole_parts
from vlrl.weights.group import WeightGroup
from vlrl.weights.manifest import (
    Checksum,
    Manifest,
    Segment,
    bucket_file,
    buckets_of,
    checksums_of,
)

Named = Iterable[tuple[str, torch.Tensor]]


class WeightReceiver:
    """Mixed into vLLM's worker (`worker_extension_cls`): loads a version in place, whole."""

    model_runner: Any
    vllm_config: Any
    device: torch.device
    distributed_init_method: str
    rank: int
    """Among the processes of this engine."""
    _adapters: AdapterSlots | None = None
    """With lora.sync=adapter, after `open_adapters`."""
    _segment: Segment | None = None
    _group: WeightGroup | None = None

    def open_adapters(self, targets: Sequence[str], policies: Sequence[str]) -> list[str]:
        """Begin with adapters of zeros; those targets (transformers' names) that have no place for one."""
        layout = PublishedLayout.read_by(self.model_runner.get_model())
        self._adapters = AdapterSlots(self.model_runner, [layout.name_of(n) for n in targets], policies)
        return self._adapters.without_place()

    def unknown_lora_products(self) -> str:
        """See `AdapterSlots.unknown_products`; after `open_adapters`."""
        assert self._adapters is not None
        return self._adapters.unknown_products

    def receive_weights(self, manifest: Manifest, first_member: int, lora: LoraConfig | None = None) -> None:
        """Load every parameter: language model, vision tower, projector and tied head; or every adapter's.

        Args:
            manifest: what to load.
            first_member: number of this engine's first process in a broadcast's group.
            lora: of the adapters, if these alone are sent.

        Raises:
            EngineError: if the version lacks parameters that the engine has, or has come damaged.
        """
        model = self.model_runner.get_model()
        layout = PublishedLayout.read_by(model)
        member = first_member + self.rank
        if manifest.checksums:  # all of it first: the engine keeps what it has, or gets a whole version
            manifest.verify(self._arriving(manifest))
        if lora is None:
            require_whole_parts(model, (layout.name_of(entry.name) for entry in manifest.entries))
        if manifest.transport == "broadcast":  # before anything is touched
            self._meet(manifest, member)
        arrived: list[Checksum] = []
        arriving = (layout.of(*named) for named in self._noted(self._arriving(manifest), manifest, arrived))
        if lora is not None:
            assert self._adapters is not None
            self._adapters.load(dict(arriving), lora)
            self._compare(arrived, manifest)
            return
        from vllm.config import set_current_vllm_config  # here: the tests of what is around it need no vLLM

        # Layer by layer, because a plain load_weights fails where the backend has repacked its weights.
        with set_current_vllm_config(self.vllm_config), all_loaded(model):
            self.model_runner.reload_weights(weights_iterator=arriving)
        _refresh_tied_head(model)
        _repack_experts(model)
        self._compare(arrived, manifest)

    def receive_weights_of(self, manifest: str, first_member: int) -> None:
        """`receive_weights` of a manifest as JSON, as a server is called; see `Manifest.as_json`."""
        self.receive_weights(Manifest.from_json(manifest), first_member)

    def remove_rendezvous(self) -> None:
        """Remove the file by which a single process met itself when it started; vLLM leaves it behind."""
        scheme, _, path = self.distributed_init_method.partition("://")
        if scheme == "file":
            Path(path).unlink(missing_ok=True)

    def _arriving(self, manifest: Manifest) -> Iterator[tuple[str, torch.Tensor]]:
        if manifest.transport == "shared_memory":
            return self._from_segment(manifest)
        if manifest.transport == "disk":
            return _from_files(manifest)
        return self._from_group(manifest)

    def _noted(
        self, arriving: Named, manifest: Manifest, arrived: list[Checksum]
    ) -> Iterator[tuple[str, torch.Tensor]]:
        """Parameters as they come, and the checksums of those that can be compared only afterwards."""
        for name, tensor in arriving:
            if manifest.checked and manifest.transport == "broadcast":
                arrived += checksums_of([(name, tensor)])
            yield name, tensor

    def _compare(self, arrived: Sequence[Checksum], manifest: Manifest) -> None:
        """What was broadcast with the trainer's checksums, which it broadcasts after the last bucket."""
        if not (manifest.checked and manifest.transport == "broadcast"):
            return
        assert self._group is not None
        sent = self._group.broadcast(
            torch.empty(len(manifest.entries), dtype=torch.int64, device=self.device)
        )
        damaged = [c.name for c, crc32 in zip(arrived, sent.tolist(), strict=True) if c.crc32 != crc32]
        if damaged:
            raise EngineError(
                f"{', '.join(damaged[:3])}: {len(damaged)} of {len(arrived)} parameters are not what the "
                f"trainer broadcast ({manifest.path}): damaged on the way; the engine has loaded them, so "
                "continue with --resume"
            )

    def _from_segment(self, manifest: Manifest) -> Iterator[tuple[str, torch.Tensor]]:
        """Views: the engine copies what it is given before the reload ends."""
        if self._segment is None or self._segment.manifest.path != manifest.path:
            self._segment = Segment(manifest)
        yield from self._segment

    def _meet(self, manifest: Manifest, member: int) -> None:
        if self._group is None or self._group.address != manifest.path:
            self._group = WeightGroup(
                manifest.path, member, manifest.num_members, self.device, manifest.timeout_s
            )

    def _from_group(self, manifest: Manifest) -> Iterator[tuple[str, torch.Tensor]]:
        assert self._group is not None
        for bucket in buckets_of(manifest):
            buffer = torch.empty(bucket.num_bytes, dtype=torch.uint8, device=self.device)
            yield from bucket.views(self._group.broadcast(buffer))


def _from_files(manifest: Manifest) -> Iterator[tuple[str, torch.Tensor]]:
    from safetensors import safe_open

    for number in range(len(buckets_of(manifest))):
        with safe_open(Path(manifest.path) / bucket_file(number), framework="pt") as file:
            for name in file.keys():  # noqa: SIM118  # no mapping, and its order is not the names'
                yield name, file.get_tensor(name)


def _refresh_tied_head(model: Any) -> None:
    """Refresh the packed copy of the embedding that a tied head multiplies with on the CPU after a reload."""
    heads = [m for m in model.modules() if type(m).__name__ == "ParallelLMHead" and hasattr(m, "cpu_linear")]
    if not heads:
        return
    from vllm.model_executor.layers.utils import dispatch_cpu_unquantized_gemm

    for head in heads:
        if head.weight.numel() == 0:
            raise EngineError("the engine's head has no weight to refresh; report this with the model's name")
        dispatch_cpu_unquantized_gemm(head, remove_weight=False)


def _repack_experts(model: Any) -> None:
    """Fused experts multiply with packed weights on the CPU; the engine packs them only when it starts."""
    for layer in model.modules():
        kernel = getattr(getattr(layer, "quant_method", None), "moe_kernel", None)
        if kernel is not None and layer.w13_weight.device.type == "cpu":
            kernel.fused_experts.process_weights_after_loading(layer)
