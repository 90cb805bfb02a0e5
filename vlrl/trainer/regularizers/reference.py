"""The model that KL is measured against: frozen, or following the policy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from vlrl.config import Config
from vlrl.config.learning.regularizers import ReferenceConfig
from vlrl.errors import EngineError
from vlrl.model.logprobs import TreeLogprobs
from vlrl.model.lora import slice_of
from vlrl.trainer.frozen.model import FrozenModel
from vlrl.trainer.loading import load_split
from vlrl.trainer.model import deepspeed_config
from vlrl.trainer.offload import of_reference

FOLDER = "reference"


def build_reference(config: Config, device_type: str, wrapped: Callable[[Any], TreeLogprobs]) -> FrozenModel:
    """The starting model, frozen, its parameters split over the ranks too.

    Args:
        config: the run's.
        device_type: of this rank.
        wrapped: puts the loss's form around a model. The features of a frozen tower are the policy's own: one
            cache serves both.
    """
    options = deepspeed_config(of_reference(config), device_type)
    return FrozenModel(wrapped(load_split(config, options)), options)


class MovingReference:
    """A reference that goes towards the policy every so many updates, slice by slice: nothing is gathered.

    TR-DPO (Gorbatovski et al., arXiv 2404.09656, §3.1): π_ref ← α π_θ + (1 - α) π_ref, which for α = 1 is its
    hard update, and every update its soft one.
    """

    def __init__(self, policy: Any, reference: Any, options: ReferenceConfig) -> None:
        """Pair the trained weights of two DeepSpeed engines that are split alike; the others never differ."""
        assert options.every is not None
        self._engine, self._every, self._mix = reference, options.every, options.mix
        copies = dict(reference.module.named_parameters())
        self._pairs = {
            name: (parameter, copies[name])
            for name, parameter in policy.module.named_parameters()
            if parameter.requires_grad
        }
        # A hundredth of a difference is lost in bfloat16, so a mean is kept in float32 in host memory.
        self._exact: dict[str, Tensor] = {}
        if self._mix < 1 and any(copy.dtype != torch.float32 for copy in copies.values()):
            self._exact = {name: slice_of(copy).float().cpu() for name, (_, copy) in self._pairs.items()}

    def follow(self, num_updates: int) -> None:
        """Take the step that is due after so many updates of the run, if one is."""
        if num_updates % self._every:
            return
        self._engine.empty_partition_cache()  # whole weights that it kept are of before
        for name, (parameter, copy) in self._pairs.items():
            mine = slice_of(parameter)
            with written_slice(copy) as target:
                if self._mix == 1:
                    target.copy_(mine)
                elif name in self._exact:
                    target.copy_(self._exact[name].lerp_(mine.float().cpu(), self._mix))
                else:
                    target.lerp_(mine.to(target.device), self._mix)

    def save(self, folder: Path, rank: int) -> None:
        """Write this rank's slices, in float32 where they are kept so."""
        path = folder / FOLDER / f"rank_{rank}.pt"
        path.parent.mkdir(parents=True, exist_ok=True)
        slices = {
            name: self._exact[name] if name in self._exact else slice_of(copy).cpu()
            for name, (_, copy) in self._pairs.items()
        }
        # Cloned: a slice is a view of its group, which torch would write whole.
        torch.save({name: tensor.clone() for name, tensor in slices.items()}, path)

    def load(self, folder: Path, rank: int) -> list[str]:
        """Read what as many ranks or others wrote; what is not as it was saved, in words.

        Raises:
            EngineError: if the checkpoint's reference is of another model.
        """
        files = sorted((folder / FOLDER).glob("rank_*.pt"), key=lambda file: int(file.stem[len("rank_") :]))
        if not files:
            return ["the checkpoint has no reference: it begins at model.path again"]
        saved = [torch.load(file, map_location="cpu", mmap=True, weights_only=True) for file in files]
        self._engine.empty_partition_cache()
        for name, (_, copy) in self._pairs.items():
            if name not in saved[0]:
                raise EngineError(
                    f"{folder / FOLDER} has no {name}: the checkpoint is of another model, or of another "
                    "model.freeze"
                )
            whole = torch.cat([of_rank[name] for of_rank in saved])[: copy.ds_numel]
            with written_slice(copy) as target:
                mine = torch.zeros(target.shape, dtype=whole.dtype)
                part = whole[rank * len(mine) : (rank + 1) * len(mine)]
                mine[: len(part)] = part
                target.copy_(mine)
            if name in self._exact:
                self._exact[name].copy_(mine)
        return []


@contextmanager
def written_slice(parameter: Any) -> Iterator[Tensor]:
    """This rank's flat slice of a released parameter that ZeRO-3 has split, to be written in place.

    If it lies on a disk it is read from there, and written back.
    """
    from deepspeed.runtime.swap_tensor.partitioned_param_swapper import PartitionedParamStatus

    on_disk = parameter.ds_tensor.status == PartitionedParamStatus.NOT_AVAILABLE
    if on_disk:
        parameter.nvme_swapper.swap_in([parameter], async_op=False)
    yield parameter.ds_tensor.detach()
    if on_disk:
        parameter.nvme_swapper.swap_out_and_release([parameter])
