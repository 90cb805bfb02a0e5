"""Weights from trainer to engine through shared memory: each rank writes its shard, nobody gathers.

ZeRO-3 keeps a parameter as equal flat slices, one per rank. On one host the slices, written side by side
into a shared segment, already are the parameter, so an update is one copy on each side and the segment
holds a whole model at every moment between steps, which checkpoints read as well.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import torch

from vlrl.cluster import check_shared_memory
from vlrl.errors import EngineError
from vlrl.published import PublishedLayout

ALIGNMENT = 64
"""Bytes; a cache line."""


@dataclass(frozen=True, slots=True)
class Entry:
    """Where one parameter lies: name in Hugging Face format, torch dtype name, shape, byte offset."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    offset: int

    @property
    def num_bytes(self) -> int:
        """Size of the parameter."""
        return prod(self.shape) * int(getattr(torch, self.dtype).itemsize)


@dataclass(frozen=True, slots=True)
class Manifest:
    """The whole model's layout in a segment file."""

    path: str
    entries: tuple[Entry, ...]
    num_bytes: int


def plan_segment(path: Path, parameters: Sequence[tuple[str, str, tuple[int, ...]]]) -> Manifest:
    """Lay (name, dtype, shape) triples out one after the other, aligned."""
    entries, offset = [], 0
    for name, dtype, shape in parameters:
        entry = Entry(name, dtype, shape, offset)
        entries.append(entry)
        offset += -(-entry.num_bytes // ALIGNMENT) * ALIGNMENT
    return Manifest(str(path), tuple(entries), offset)


def create_segment(manifest: Manifest) -> None:
    """Reserve the segment's bytes.

    Raises:
        ResourceError: if shared memory is too small.
    """
    check_shared_memory(manifest.num_bytes, "the weight segment")
    with open(manifest.path, "wb") as file:
        os.posix_fallocate(file.fileno(), 0, manifest.num_bytes)


class Segment:
    """A mapped segment: named tensors that share its memory."""

    def __init__(self, manifest: Manifest) -> None:
        self.manifest = manifest
        with open(manifest.path, "r+b") as file:
            self._map = mmap.mmap(file.fileno(), manifest.num_bytes)
        self.flat = {e.name: self._view(e) for e in manifest.entries}
        self._shapes = {e.name: e.shape for e in manifest.entries}

    def __iter__(self) -> Iterator[tuple[str, torch.Tensor]]:
        """(name, tensor) in the manifest's order; the tensors are views."""
        for name, flat in self.flat.items():
            yield name, flat.view(self._shapes[name])

    def write_shard(self, name: str, shard: torch.Tensor, start: int) -> None:
        """Copy a rank's flat slice of a parameter to element `start`; the padding past the end is cut."""
        target = self.flat[name]
        count = min(shard.numel(), target.numel() - start)
        if count > 0:
            target[start : start + count].copy_(shard.view(-1)[:count])

    def _view(self, entry: Entry) -> torch.Tensor:
        dtype = getattr(torch, entry.dtype)
        return torch.frombuffer(
            self._map, dtype=dtype, count=entry.num_bytes // dtype.itemsize, offset=entry.offset
        )


class WeightReceiver:
    """Mixed into vLLM's worker (`worker_extension_cls`): loads a segment in place, whole."""

    model_runner: Any
    _segment: Segment | None = None

    def receive_weights(self, manifest: Manifest) -> None:
        """Load every parameter of the segment: language model, vision tower, projector and tied head.

        Raises:
            EngineError: if the segment lacks parameters the engine has.
        """
        if self._segment is None or self._segment.manifest != manifest:
            self._segment = Segment(manifest)
        layout = PublishedLayout.read_by(self.model_runner.get_model())
        # Layer by layer, because a plain load_weights fails where the backend has repacked its weights.
        self.model_runner.reload_weights(weights_iterator=self._copies(self._segment, layout))
        _refresh_tied_head(self.model_runner.get_model())
        _repack_experts(self.model_runner.get_model())

    def _copies(self, segment: Segment, layout: PublishedLayout) -> Iterator[tuple[str, torch.Tensor]]:
        # Cloned: the backend may keep what it is given, and the trainer goes on writing to the segment.
        for name, tensor in segment:
            yield layout.of(name, tensor.clone())


def _refresh_tied_head(model: Any) -> None:
    """On the CPU a tied head multiplies with a packed copy of the embedding that a reload leaves stale."""
    heads = [m for m in model.modules() if type(m).__name__ == "ParallelLMHead" and hasattr(m, "cpu_linear")]
    if not heads:
        return
    from vllm.model_executor.layers.utils import dispatch_cpu_unquantized_gemm

    for head in heads:
        if head.weight.numel() == 0:
            raise EngineError("the engine's head has no weight to refresh; report this with the model's name")
        dispatch_cpu_unquantized_gemm(head, remove_weight=False)


def _repack_experts(model: Any) -> None:
    """On the CPU fused experts multiply with packed weights; the engine packs them only when it starts."""
    for layer in model.modules():
        kernel = getattr(getattr(layer, "quant_method", None), "moe_kernel", None)
        if kernel is not None and layer.w13_weight.device.type == "cpu":
            kernel.fused_experts.process_weights_after_loading(layer)
