"""Loading a model into the ranks' slices: no rank ever holds it whole, in host memory or on its GPU.

transformers builds the model without memory and then registers one weight after the other, converted and
renamed as the family needs, as a view of the mapped file wherever it can. Each is split the moment it is
registered, so a rank reads from the file only its slice of it. It has a weight whole where its type or layout
is not the file's, and then two at most: transformers lets go of one when the next is made.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import nn

from vlrl.choices import MachineChoice
from vlrl.config import Config
from vlrl.errors import ConfigError
from vlrl.model.lora import slice_of
from vlrl.model.sequence_parallel import require_heads
from vlrl.trainer.choices import RankChoices, choose_for
from vlrl.trainer.model import deepspeed_config, load_model

NUM_COMPARED = 64
"""Leading values of each weight that ranks compare; training changes some of almost every one."""
TRIM_EVERY_BYTES = 32 * 2**20
"""Of weights, after which freed memory goes back to the system."""


def load_split(config: Config, options: Mapping[str, Any]) -> Any:
    """What `load_model` returns, split over the ranks; every rank must call it.

    Weights that the checkpoint has not, and adapters, are whole: `deepspeed.initialize` splits these.

    Args:
        config: names the model.
        options: DeepSpeed's own config of the engine that will train or run it.

    Raises:
        ConfigError: see `load_model` and `_Splitter.require_agreement`.
    """
    splitter = _Splitter(config, options)
    with splitter.at_work():
        model = load_model(config)
    splitter.require_agreement()
    return model.to(splitter.device)  # buffers, and what is still whole


class SecondModel(NamedTuple):
    """A model that a rank holds beside the policy, loaded and split.

    Attributes:
        model: as `load_split` returns it.
        options: DeepSpeed's own config of its engine.
        chosen: for the device.
        choices: those of `chosen` that differ from the policy's, named as this model's.
    """

    model: Any
    options: Mapping[str, Any]
    chosen: RankChoices
    choices: tuple[MachineChoice, ...]


def load_second(
    config: Config, key: str, device: torch.device, policy_choices: Sequence[MachineChoice]
) -> SecondModel:
    """Load a model beside the policy; every rank must call it.

    Args:
        config: under which it is loaded and run, not the policy's.
        key: teacher or critic, the section of `algorithm` that names it.
        device: that trains.
        policy_choices: what was chosen for the policy.

    Raises:
        ConfigError: in the words of the key; see `load_split`; or if sequences cannot be shared by its heads.
    """
    options = deepspeed_config(config, device.type)
    try:
        model = load_split(config, options)
        require_heads(model.get_decoder().config, config.trainer.sequence_parallel)
    except ConfigError as error:
        raise ConfigError(f"algorithm.{key}: {error}") from error
    chosen = choose_for(model, config, device)
    choices = (choice for choice in chosen.all if choice not in policy_choices)
    named = tuple(replace(choice, name=f"{choice.name} of the {key}") for choice in choices)
    return SecondModel(model, options, chosen, named)


@contextmanager
def _in_order() -> Iterator[None]:
    """Have transformers read a weight when its turn comes, instead of all of them ahead in threads."""
    name = "HF_DEACTIVATE_ASYNC_LOAD"
    before = os.environ.get(name)
    os.environ[name] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


class _Splitter:
    """Called by torch with each parameter that a module is given; splits those that hold loaded weights."""

    def __init__(self, config: Config, options: Mapping[str, Any]) -> None:
        import deepspeed

        # With a module, if an empty one, DeepSpeed also puts its linear layer in place of torch's. The dtype
        # is the config's: `deepspeed.initialize` would swap float32 to a disk through buffers in bfloat16.
        self._zero = deepspeed.zero.Init(module=nn.Module(), config_dict_or_path=dict(options))
        self._alone = torch.distributed.get_world_size() == 1  # its slice is the whole model
        self._path, self._dtype = config.model.path, getattr(torch, config.model.dtype)
        self._seen, self._tied_unequal, self._num_freed = hashlib.sha256(), False, 0

    @property
    def device(self) -> torch.device:
        """The device that this rank trains on."""
        device: torch.device = self._zero.local_device
        return device

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Split what is loaded inside the block."""
        handle = nn.modules.module.register_module_parameter_registration_hook(self)
        try:
            with nullcontext() if self._alone else _in_order():
                yield
        finally:
            handle.remove()

    def __call__(self, module: nn.Module, name: str, parameter: Any) -> None:
        if parameter.is_meta or not getattr(parameter, "_is_hf_initialized", False):
            return  # not loaded yet, or not in the checkpoint: transformers fills it later
        if hasattr(parameter, "ds_tensor"):
            self._check_tie(module._parameters.get(name), parameter)
            return
        self._give_back_freed(parameter.data.nbytes)
        # What is trained in bfloat16 is so altogether, whatever transformers would keep in float32.
        parameter.data = parameter.data.to(self._dtype).contiguous()
        self._remember(parameter.data)
        self._zero._convert_to_deepspeed_param(parameter)
        parameter.partition()
        parameter.data = parameter.data.to(self.device)  # nothing but the place to gather it at

    def _give_back_freed(self, num_bytes: int) -> None:
        """Return to the system what glibc keeps of freed weights, now and then.

        A weight whose type was changed is a copy. Under 32 MiB it lies in glibc's heap, where the slices that
        are allocated beside it would keep its pages in the process.
        """
        self._num_freed += num_bytes
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # other C libraries have none
        if self._num_freed >= TRIM_EVERY_BYTES and trim is not None and not self._alone:
            trim(0)
            self._num_freed = 0

    def _remember(self, weight: torch.Tensor) -> None:
        start = weight.view(-1)[:NUM_COMPARED].view(torch.uint8)
        self._seen.update(f"{tuple(weight.shape)}".encode() + start.numpy().tobytes())

    def _check_tie(self, replaced: Any, tied: Any) -> None:
        """Notice where two weights of the checkpoint are tied that differ.

        transformers compares the two and finds them equal, since nothing of either is left in its place.
        """
        if not hasattr(replaced, "ds_tensor"):
            return
        mine, other = slice_of(replaced), slice_of(tied)
        count = max(tied.ds_numel - tied.ds_zero_partition_rank * len(mine), 0)  # the rest is padding
        self._tied_unequal |= not torch.equal(mine[:count], other[:count])

    def require_agreement(self) -> None:
        """Hold what this rank has read, of its own host's files, against the others'.

        Raises:
            ConfigError: if a tie is contradicted, or this rank's weights are others than rank 0's.
        """
        contradicted = torch.tensor(int(self._tied_unequal), device=self.device)
        torch.distributed.all_reduce(contradicted, torch.distributed.ReduceOp.MAX)
        if contradicted:
            raise ConfigError(
                f"model.path={self._path!r}: its config.json ties the head to the embeddings, but it has "
                "different weights for them: set tie_word_embeddings to false there"
            )
        mine = torch.frombuffer(bytearray(self._seen.digest()), dtype=torch.uint8).to(self.device)
        first = mine.clone()
        torch.distributed.broadcast(first, 0)
        if not torch.equal(first, mine):
            raise ConfigError(
                f"model.path={self._path!r} holds other weights on host {socket.gethostname()} than on that "
                "of rank 0: copy the same folder to every host"
            )
