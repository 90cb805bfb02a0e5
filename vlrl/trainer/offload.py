"""What a rank offloads to a local disk (ZeRO-Infinity, arXiv 2104.07857): where, and what checkpoints add.

DeepSpeed copies its swap files into a checkpoint and back, and nothing else: Adam's count of steps, and
states too small to be swapped, stay in memory and would begin again.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import torch
from torch import nn

from vlrl.config import Config
from vlrl.errors import ConfigError
from vlrl.machine.checks import toolkit_remedy
from vlrl.machine.compiler import DISK_ACCESS, compile_stub
from vlrl.machine.nvidia import toolkit_problem
from vlrl.model.lora import add_adapters
from vlrl.model.meta_model import empty_model
from vlrl.weights.segments import hold, new_path, orphans

InMemory: TypeAlias = list[dict[str, torch.Tensor]]
"""Of each of the optimizer's flat groups: its master weights and its states, as far as they are in memory."""
MASTER = "master"
BUFFERS_BESIDE_A_BLOCK = 5


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
            self.path = new_path(parent)
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


def require_disk_access(on_gpu: bool, environment: Mapping[str, str] = os.environ) -> None:
    """Raise ConfigError if this machine lacks what DeepSpeed compiles its access to disks with.

    DeepSpeed itself finds out when its engine is made, after the model is loaded.
    """
    option, instead = "trainer.offload_dir", "remove the option to offload to host memory"
    if failure := compile_stub(DISK_ACCESS, environment=environment):
        raise ConfigError(
            f"{option}: DeepSpeed compiles its access to disks in C++ against libaio, and {failure.reason}; "
            f"apt-get install {' '.join(failure.packages)}, or {instead}"
        )
    if on_gpu and (problem := toolkit_problem(environment)):
        raise ConfigError(
            f"{option}: with a GPU, DeepSpeed compiles its access to disks with the CUDA toolkit, and "
            f"{problem}; {toolkit_remedy(torch.version.cuda or 'VERSION')}, or {instead}"
        )


def with_folder(config: Config, folder: OffloadFolder) -> Config:
    """The config as ranks are given it."""
    trainer = config.trainer.model_copy(update={"offload_dir": folder.path})
    return config.model_copy(update={"trainer": trainer})


def of_reference(config: Config) -> Config:
    """The config as the reference's engine is given it: DeepSpeed empties the folder in which it begins."""
    folder = config.trainer.offload_dir
    if folder is None:
        return config
    trainer = config.trainer.model_copy(update={"offload_dir": folder / "reference"})
    return config.model_copy(update={"trainer": trainer})


def zero_options(config: Config) -> Mapping[str, Any]:
    """Options of DeepSpeed's zero_optimization section."""
    trainer = config.trainer
    place = {"device": "cpu"}
    if trainer.offload_dir is not None:
        place = {"device": "nvme", "nvme_path": str(trainer.offload_dir)}
    wanted = {"offload_optimizer": trainer.offload_optimizer, "offload_param": trainer.offload_parameters}
    options: dict[str, Any] = {name: dict(place) for name, is_wanted in wanted.items() if is_wanted}
    if _on_disk(config):
        # By default the first 10^9 elements would stay in host memory, and a slice of over 10^8, or more than
        # five at once, would end the run: fetching ahead fills the buffers that the next block needs.
        options["offload_param"] |= {"max_in_cpu": 0, **_buffers(config)}
        options |= {"stage3_prefetch_bucket_size": 0, "stage3_max_reuse_distance": 0}
    return options


def correct_offload(optimizer: Any, config: Config) -> None:
    """Let a ZeRO-3 optimizer that offloads train and load as one that does not."""
    if config.trainer.offload_optimizer:
        _same_norm(optimizer)
    elif _on_disk(config):
        _loads_to_disk(optimizer)


def _same_norm(optimizer: Any) -> None:
    """Let a ZeRO-3 optimizer whose states are offloaded take the gradients' norm as any other does.

    DeepSpeed has two ways: in float64, and for offloaded states in float32. Where gradients are clipped, the
    last bits of all weights depend on it.
    """
    partitions = optimizer._DeepSpeedZeroOptimizer_Stage3__param_id_to_grad_partition

    def norm(parameters: Sequence[Any]) -> torch.Tensor:
        gradients = [partitions[parameter.ds_id] for parameter in parameters]
        total: torch.Tensor = optimizer.get_grad_norm_direct(gradients, parameters)
        return total.cpu()

    optimizer.complete_grad_norm_calculation_for_cpu_offload = norm


def _loads_to_disk(optimizer: Any) -> None:
    """Let a ZeRO-3 optimizer whose states are in memory load a checkpoint where the weights' slices are not.

    DeepSpeed copies the restored master weights into slices in memory, and finds none where a group lies on a
    disk. Its own way of ending a step is used instead, which writes them to the disk.
    """
    from deepspeed.checkpoint import constants

    def load(state: Mapping[str, Any], load_optimizer_states: bool = True) -> None:
        optimizer.loss_scaler = state[constants.LOSS_SCALER]
        optimizer.dynamic_loss_scale, optimizer.overflow = state["dynamic_loss_scale"], state["overflow"]
        if load_optimizer_states:
            optimizer._set_fp32_optimizer_param_groups()
            optimizer.optimizer.load_state_dict(state[constants.OPTIMIZER_STATE_DICT])
            optimizer._clear_fp32_optimizer_param_groups()
        saved = state[constants.FP32_FLAT_GROUPS]
        for number, (master, wanted) in enumerate(
            zip(optimizer.fp32_partitioned_groups_flat, saved, strict=True)
        ):
            master.data.copy_(wanted.data)
            optimizer._reassign_or_swap_out_partitioned_parameters(number)

    optimizer._rigid_load_state_dict = load


def _on_disk(config: Config) -> bool:
    """Whether slices of the weights lie on a disk."""
    return config.trainer.offload_parameters and config.trainer.offload_dir is not None


def _buffers(config: Config) -> dict[str, int]:
    """Host memory through which slices are read: one buffer for each that is in use at a time.

    A block of layers is fetched whole; beside it the embedding and the head may be in use, each with what
    belongs to it.
    """
    module = empty_model(config)
    if config.lora is not None:
        add_adapters(module, config.lora, config.run.seed, config.policies)
    largest = max(parameter.numel() for parameter in module.parameters())
    lists = (child for child in module.modules() if isinstance(child, nn.ModuleList))
    in_block = max((len(list(block.parameters())) for blocks in lists for block in blocks), default=0)
    return {
        "buffer_count": in_block + BUFFERS_BESIDE_A_BLOCK,
        "buffer_size": -(-largest // config.trainer.world_size) + 1,
    }


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
