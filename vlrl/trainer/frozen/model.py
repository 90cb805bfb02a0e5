"""Frozen models beside the policy: the reference of the KL term, and the teacher of a distillation.

Each has a ZeRO-3 engine of its own over the same ranks and scores the micro-batches that the policy trains:
the same packed trees, positions and media.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.distributed import ProcessGroup

from vlrl.choices import MachineChoice
from vlrl.config import Config
from vlrl.model.features import StepFeatures
from vlrl.model.logprobs import DeviceBatch, TreeLogprobs
from vlrl.trainer.loading import load_second
from vlrl.trainer.model import with_logprobs


class FrozenModel:
    """A model that only gives log-probabilities.

    Attributes:
        engine: DeepSpeed's.
        choices: what was chosen for it otherwise than for the policy.
    """

    def __init__(
        self, module: TreeLogprobs, options: Mapping[str, Any], choices: Sequence[MachineChoice] = ()
    ) -> None:
        """Split what is still whole over the ranks; every rank must call it."""
        import deepspeed

        module.requires_grad_(False)
        self.engine, *_ = deepspeed.initialize(model=module, config=dict(options))
        self.engine.eval()  # DeepSpeed's returns nothing
        self.choices = tuple(choices)

    def logprobs(self, batch: DeviceBatch, kept: StepFeatures) -> torch.Tensor:
        """Log-probabilities of a micro-batch's trained tokens, without gradient: [M] float32 nats."""
        with torch.no_grad():
            found: torch.Tensor = self.engine(batch, kept)[0]
        return found


def of_teacher(config: Config) -> Config:
    """The config under which a teacher is loaded and run: another model, whole and never trained."""
    teacher, trainer = config.algorithm.teacher, config.trainer
    assert teacher is not None, "algorithm.teacher is not set"
    folder = trainer.offload_dir
    frozen = {
        "gradient_checkpointing": False,
        "offload_parameters": trainer.offload_parameters or teacher.offload,
        "offload_dir": None if folder is None else folder / "teacher",  # DeepSpeed empties it first
    }
    return config.model_copy(
        update={
            "model": config.model.model_copy(update={"path": teacher.path, "freeze": []}),
            "lora": None,
            "trainer": trainer.model_copy(update=frozen),
        }
    )


def open_teacher(
    config: Config,
    banned_token_ids: Sequence[int],
    device: torch.device,
    sharers: ProcessGroup | None,
    policy_choices: Sequence[MachineChoice],
) -> FrozenModel:
    """Load algorithm.teacher; every rank must call it.

    Args:
        config: the whole config.
        banned_token_ids: impossible for the student, and so for its teacher.
        device: that trains.
        sharers: ranks that share a sequence.
        policy_choices: what was chosen for the policy.

    Raises:
        ConfigError: see `load_second`.
    """
    config = of_teacher(config)
    teacher = load_second(config, "teacher", device, policy_choices)
    module = with_logprobs(teacher.model, config, banned_token_ids, teacher.chosen, None, sharers)
    return FrozenModel(module, teacher.options, teacher.choices)
