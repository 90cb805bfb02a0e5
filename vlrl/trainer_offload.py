"""What a rank offloads to a local disk (ZeRO-Infinity, arXiv 2104.07857): where, and what checkpoints add.

DeepSpeed copies its swap files into a checkpoint and back, and nothing else: Adam's count of steps, and
states too small to be swapped, stay in memory and would begin anew.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

import torch

from vlrl.config import Config
from vlrl.errors import ConfigError
from vlrl.segment_files import hold, new_path, orphans

InMemory: TypeAlias = list[dict[str, torch.Tensor]]
"""Of each of the optimizer's flat groups: its master weights and its states, as far as they are in memory."""
MASTER = "master"


class OffloadFolder:
    """This run's folder under trainer.offload_dir, removed at its end; a killed run's goes at the next."""

    def __init__(self, parent: Path) -> None:
        """Make it, and remove what killed runs left there.

        Raises:
            ConfigError: if it cannot be made.
        """
        try:
            parent.mkdir(parents=True, exist_ok=True)
            for orphan in orphans(parent):
                shutil.rmtree(orphan)
            self.path = new_path(parent.absolute())
            self.path.mkdir()
        except OSError as error:
            raise ConfigError(
                f"trainer.offload_dir={parent}: {error.strerror}; give another folder"
            ) from error
        self._held = hold(self.path)

    def close(self) -> None:
        """Remove it."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._held)


def with_folder(config: Config, folder: OffloadFolder) -> Config:
    """The config as ranks are given it."""
    trainer = config.trainer.model_copy(update={"offload_dir": folder.path})
    return config.model_copy(update={"trainer": trainer})


def zero_options(config: Config) -> Mapping[str, Any]:
    """Of DeepSpeed's zero_optimization section.

    Raises:
        ConfigError: if this machine has not what DeepSpeed needs to offload to a disk.
    """
    trainer = config.trainer
    place = {"device": "cpu"}
    if trainer.offload_dir is not None:
        _require_async_io()
        place = {"device": "nvme", "nvme_path": str(trainer.offload_dir)}
    wanted = {"offload_optimizer": trainer.offload_optimizer, "offload_param": trainer.offload_parameters}
    return {name: dict(place) for name, is_wanted in wanted.items() if is_wanted}


def states_in_memory(optimizer: Any) -> InMemory:
    """Copies of what a ZeRO-3 optimizer that swaps to a disk has in memory."""
    return [
        {name: tensor.clone() for name, tensor in found.items() if tensor.numel()}
        for found in _by_group(optimizer)
    ]


def bring_back(optimizer: Any, saved: InMemory) -> None:
    """Put what `states_in_memory` gave into an optimizer of the same groups."""
    for found, wanted in zip(_by_group(optimizer), saved, strict=True):
        for name, tensor in wanted.items():
            found[name].data.copy_(tensor)


def _by_group(optimizer: Any) -> list[dict[str, torch.Tensor]]:
    """Master weights and states by name; what is swapped out is empty."""
    return [
        {
            MASTER: flat.data,
            **{k: v for k, v in optimizer.optimizer.state[flat].items() if torch.is_tensor(v)},
        }
        for flat in optimizer.fp32_partitioned_groups_flat
    ]


def _require_async_io() -> None:
    from deepspeed.ops.op_builder import AsyncIOBuilder

    if not AsyncIOBuilder().is_compatible(verbose=False):
        raise ConfigError(
            "trainer.offload_dir: DeepSpeed writes to disks through libaio, which it compiles against; "
            "apt-get install libaio-dev g++, or remove the option to offload to host memory"
        )
