"""The engine that trains a module, its optimizer, and what a checkpoint may not change of that."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

import numpy as np
import torch

from vlrl.config import Config
from vlrl.config.memory import OptimConfig
from vlrl.errors import ConfigError
from vlrl.model.logprobs import TreeModel
from vlrl.model.parts import hidden_matrices
from vlrl.trainer.choices import fuses_update
from vlrl.trainer.model import make_leaves
from vlrl.trainer.offload import correct_offload
from vlrl.trainer.optimizers.host import HostAdamW
from vlrl.trainer.optimizers.muon import MuonAdamW, follow_slices


def make_engine(module: TreeModel, config: Config, options: Mapping[str, Any], device: torch.device) -> Any:
    """DeepSpeed's engine that trains a module; every rank must call it.

    Args:
        module: whose model is split.
        config: the whole config.
        options: DeepSpeed's own, see `deepspeed_config`.
        device: that trains.

    Raises:
        ConfigError: see `make_optimizer`.
    """
    import deepspeed

    make_leaves(module)
    optimizer = make_optimizer(module.parameters(), config, device.type, hidden_matrices(module.model))
    engine, *_ = deepspeed.initialize(model=module, optimizer=optimizer, config=dict(options))
    correct_offload(engine.optimizer, config)
    follow_slices(engine.optimizer, device)
    return engine


def make_optimizer(
    parameters: Iterable[torch.nn.Parameter],
    config: Config,
    device_type: str,
    matrices: Iterable[torch.nn.Parameter] = (),
) -> torch.optim.Optimizer:
    """The optimizer of optim.name over the trained ones of some parameters, its moments as optim.state says.

    Args:
        parameters: all.
        config: the whole config.
        device_type: "cpu" or "cuda".
        matrices: those of them that Muon updates.

    Raises:
        ConfigError: if 8bit is asked for and bitsandbytes is not installed.
    """
    options, trained = config.optim, [p for p in parameters if p.requires_grad]
    fused = fuses_update(config, device_type)
    kind: Any = partial(torch.optim.AdamW, fused=True) if fused else HostAdamW
    if options.state == "8bit":
        try:
            from bitsandbytes.optim import AdamW8bit
        except ImportError as error:
            raise ConfigError(
                "optim.state=8bit needs bitsandbytes: pip install 'vlrl[8bit]', or set it to float32"
            ) from error
        kind = AdamW8bit
    if options.name == "muon":
        of_muon = {id(p) for p in matrices if p.requires_grad}
        others = [p for p in trained if id(p) not in of_muon]
        trained = [p for p in trained if id(p) in of_muon]
        kind = partial(
            MuonAdamW,
            others=others,
            momentum=options.momentum,
            fused=fused or None,
        )
    made: torch.optim.Optimizer = kind(
        trained, lr=options.lr, betas=options.betas, eps=options.eps, weight_decay=options.weight_decay
    )
    return made


def set_options(groups: Iterable[dict[str, Any]], options: OptimConfig) -> list[str]:
    """Give an optimizer's groups the config's options in place of those that a checkpoint brought along.

    The learning rate is not among them: the schedule sets it at every step.

    Args:
        groups: `param_groups`, after `load_state_dict`.
        options: the config's.

    Returns:
        What changed, a sentence an option.
    """
    changes: dict[str, str] = {}
    for group in groups:
        for name in ("betas", "eps", "weight_decay", *(["momentum"] if "momentum" in group else [])):
            saved, wanted = group[name], getattr(options, name)
            if not np.array_equal(saved, wanted):  # betas may have become a list
                changes[name] = f"optim.{name}: {saved} in the checkpoint, {wanted} from here on"
            group[name] = wanted
    return list(changes.values())


def set_fused(optimizer: torch.optim.Optimizer, fused: bool) -> None:
    """Let AdamW update as this rank's config says, not as the one did whose checkpoint it has loaded.

    A fused update counts its steps on the device of the weights, another one on the host.
    """
    for group in optimizer.param_groups:
        if "fused" in group:
            group["fused"] = fused or None
    for parameter, state in optimizer.state.items():
        if torch.is_tensor(state.get("step")):
            state["step"] = state["step"].to(parameter.device if fused else "cpu")
