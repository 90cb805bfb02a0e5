"""A rank's part of a checkpoint: its slice of the optimizer states, random states, and the model's files."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from vlrl.algorithm.penalties.coefficients import Coefficients
from vlrl.config import Config
from vlrl.config.learning.policies import ADAPTER_FOLDER
from vlrl.errors import EngineError
from vlrl.model.hf_names import save_as_published
from vlrl.model.lora import save_adapters
from vlrl.model.omni.thinker import is_thinker, save_thinker
from vlrl.model.scored.files import is_scored, save_scored
from vlrl.storage.shared_folder import REMEDY
from vlrl.trainer.choices import fuses_update
from vlrl.trainer.offload import bring_back, states_in_memory
from vlrl.trainer.optimizers.make import set_fused, set_options
from vlrl.trainer.regularizers.rank import RankRegularizers
from vlrl.trainer.state.reslice import count_ranks, load_from_other_ranks

ZERO = "zero"
"""The folder of the ranks' files in that of their state."""
CRITIC = "critic"
"""The folder of the critic's state in that of the policy's."""

HOST, DEVICE, IN_MEMORY, COEFFICIENTS = "rng", "rng_cuda", "in_memory", "coefficients"
"""What is saved beside DeepSpeed's own."""


def save_state(
    engine: Any, path: str, config: Config, device_type: str, regularizers: RankRegularizers
) -> None:
    """Write what `load_state` reads; every rank must call it.

    Args:
        engine: DeepSpeed's, of this rank.
        path: of the folder of all ranks' states.
        config: the run's.
        device_type: of this rank.
        regularizers: of this rank, with its critic if there is one.
    """
    state = random_states(device_type)
    state[COEFFICIENTS] = asdict(regularizers.coefficients)
    regularizers.save_reference(Path(path))
    if _swaps(config):
        state[IN_MEMORY] = states_in_memory(engine.optimizer)
    engine.save_checkpoint(path, tag=ZERO, client_state=state)
    if (critic := regularizers.critic) is not None:
        critic.engine.save_checkpoint(str(Path(path) / CRITIC), tag=ZERO)


def load_state(
    engine: Any, path: str, config: Config, device_type: str, regularizers: RankRegularizers
) -> list[str]:
    """Read what `save_state` wrote, on as many ranks or on others; every rank must call it.

    Args:
        engine: DeepSpeed's, of this rank.
        path: of the folder of all ranks' states.
        config: the run's.
        device_type: of this rank.
        regularizers: of this rank, with its critic if there is one.

    Returns:
        What is not as it was saved, in words: the config's options hold.

    Raises:
        EngineError: if there is no state, or none that can be cut for this number of ranks.
    """
    if count_ranks(Path(path) / ZERO) == 0:
        raise EngineError(f"host {socket.gethostname()} sees no trainer state under {path}: {REMEDY}")
    client_state = _load_engine(engine, Path(path), config, device_type)
    changes = set_random_states(client_state, device_type)
    saved = client_state.get(COEFFICIENTS, {})
    regularizers.coefficients = Coefficients.restored(saved, config.algorithm)
    changes += regularizers.load_reference(Path(path))
    if _swaps(config):
        bring_back(engine.optimizer, client_state[IN_MEMORY])
    changes += set_options(engine.optimizer.param_groups, config.optim)
    if (critic := regularizers.critic) is None:
        return changes
    if count_ranks(Path(path) / CRITIC / ZERO) == 0:
        return [*changes, "the checkpoint has no critic: it begins at its own model again"]
    _load_engine(critic.engine, Path(path) / CRITIC, config, device_type)
    set_options(critic.engine.optimizer.param_groups, config.optim)  # which has said so of the policy
    return changes


def _load_engine(engine: Any, path: Path, config: Config, device_type: str) -> Mapping[str, Any]:
    """Read what an engine saved, on as many ranks or on others; what was saved beside it."""
    folder, num_ranks = path / ZERO, config.trainer.world_size
    if count_ranks(folder) == num_ranks:
        client_state: Mapping[str, Any] = engine.load_checkpoint(str(path), tag=ZERO)[1]
    else:
        client_state = load_from_other_ranks(engine, folder, torch.distributed.get_rank(), num_ranks)
    set_fused(engine.optimizer.optimizer, fuses_update(config, device_type))
    return client_state


def save_model(model: Any, path: str, state: Mapping[str, Any], adapters: Mapping[str, torch.Tensor]) -> None:
    """Write a model in Hugging Face format, its adapters beside it if it has some.

    Args:
        model: partitioned by ZeRO-3.
        path: of the folder.
        state: the whole weights, adapters merged; of several policies without them.
        adapters: their whole weights by peft's names; empty without LoRA.
    """
    save_as_published(model)
    if is_scored(model):  # whole: adapters without the head would be no reward model
        save_scored(model, path, state)
        return
    if is_thinker(model):
        save_thinker(model, path, state)
    else:
        model.save_pretrained(path, state_dict=state)
    if adapters:
        save_adapters(model, adapters, Path(path) / ADAPTER_FOLDER)


def random_states(device_type: str) -> dict[str, Any]:
    """The states of torch's generators that a rank on this kind of device uses."""
    states: dict[str, Any] = {HOST: torch.get_rng_state()}
    if device_type == "cuda":
        states[DEVICE] = torch.cuda.get_rng_state()
    return states


def set_random_states(states: Mapping[str, Any], device_type: str) -> list[str]:
    """Put back what `random_states` gave; what could not be, in words."""
    torch.set_rng_state(states[HOST])
    if device_type != "cuda":
        return []
    if DEVICE not in states:
        return ["the checkpoint has no random state of a GPU: this one's begins from the seed again"]
    torch.cuda.set_rng_state(states[DEVICE])
    return []


def _swaps(config: Config) -> bool:
    return config.trainer.offload_optimizer and config.trainer.offload_dir is not None
