"""The memory that a rank gives up while an engine has its GPU, and takes back for its next step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch


class DeviceMemory:
    """Weights, optimizer states and gradients of a rank's ZeRO-3 engines: on the device, or in host memory.

    Storages are emptied and filled again in place, so that every view of them (ZeRO-3 has several of each)
    stays valid; DeepSpeed's own `offload_states` takes no optimizer but its fused Adam, and no frozen
    parameters. Gradients are kept only where a program has added some up and taken no step yet.
    """

    def __init__(self, engines: Sequence[Any], device: torch.device) -> None:
        """Watch over DeepSpeed's engines; a reference's has no optimizer."""
        self._engines, self._device = list(engines), device
        self._host: dict[int, torch.Tensor] = {}
        self._given_up: list[tuple[torch.UntypedStorage, torch.Tensor | int]] = []

    def give_up(self, *, keep_gradients: bool = False) -> int:
        """Move everything to host memory; bytes that were freed on the device.

        Args:
            keep_gradients: they wait for their optimizer step; else they come back as zeros.
        """
        gradients = _storages(_gradients(self._engines), self._device)
        dropped = _storages(_buckets(self._engines), self._device)
        kept = _storages(_states(self._engines), self._device)
        if keep_gradients:
            kept += gradients
        else:
            dropped += gradients
        self._given_up = [(storage, storage.nbytes()) for storage in dropped]
        self._given_up += [(storage, self._copied(number, storage)) for number, storage in enumerate(kept)]
        freed = sum(storage.nbytes() for storage, _ in self._given_up)
        for storage, _ in self._given_up:
            storage.resize_(0)
        if self._device.type == "cuda":
            torch.cuda.empty_cache()
        return freed

    def take_back(self) -> None:
        """Move everything back to where it was."""
        for storage, content in self._given_up:
            if isinstance(content, int):
                storage.resize_(content)
                _bytes_of(storage).zero_()
            else:
                storage.resize_(content.numel())
                _bytes_of(storage).copy_(content, non_blocking=True)
        self._given_up = []
        if self._device.type == "cuda":
            torch.cuda.synchronize()  # the host's copies are written to again at the next turn

    def _copied(self, number: int, storage: torch.UntypedStorage) -> torch.Tensor:
        """The bytes of the storage with this number, in host memory that is reserved and pinned once."""
        host = self._host.get(number)
        if host is None or host.numel() != storage.nbytes():
            pin = self._device.type == "cuda"
            host = self._host[number] = torch.empty(storage.nbytes(), dtype=torch.uint8, pin_memory=pin)
        return host.copy_(_bytes_of(storage))


def _states(engines: Sequence[Any]) -> Iterator[torch.Tensor]:
    """Tensors whose values count: slices of weights, whole small ones, buffers, masters and moments."""
    for engine in engines:
        for parameter in engine.module.parameters():
            yield from (parameter.ds_tensor, parameter.data)
        yield from engine.module.buffers()
        yield from getattr(engine.optimizer, "fp32_partitioned_groups_flat", ())
        wrapped = getattr(engine.optimizer, "optimizer", None)
        for state in wrapped.state.values() if wrapped is not None else ():
            yield from (value for value in state.values() if torch.is_tensor(value))


def _gradients(engines: Sequence[Any]) -> Iterator[torch.Tensor]:
    """The flat gradients of each engine that has an optimizer."""
    found = (getattr(engine.optimizer, "grad_partitions_flat_buffer", None) for engine in engines)
    yield from (flat for flat in found if flat is not None)


def _buckets(engines: Sequence[Any]) -> Iterator[torch.Tensor]:
    """What gradients are reduced in."""
    for engine in engines:
        buckets = getattr(engine.optimizer, "ipg_buckets", {}).values()
        yield from (bucket.buffer for bucket in buckets if bucket.buffer is not None)


def _storages(tensors: Iterable[torch.Tensor], device: torch.device) -> list[torch.UntypedStorage]:
    """Each storage on the device once, in the order of its first tensor; not those of mapped files."""
    found = {t.untyped_storage().data_ptr(): t.untyped_storage() for t in tensors if t.device == device}
    return [storage for pointer, storage in found.items() if pointer and storage.resizable()]


def _bytes_of(storage: torch.UntypedStorage) -> torch.Tensor:
    return torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage)
