"""vlrl's trainer alone as a side of train_step.py: prefix trees on a ZeRO-3 rank. Not run by hand."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from cases import Case
from step_job import Job
from train_side import LEARNING_RATE, MAX_TOKENS, Prepare, TrainSide, serve

if TYPE_CHECKING:
    from vlrl.config import Config


def config_of(case: Case, model: Path, **optim: object) -> Config:
    """A run of one rank without a data set of its own; what it writes goes beside the model."""
    from vlrl.config import parse_config

    return parse_config(
        {
            "run": {"dir": str(model.parent)},
            "model": {"path": str(model), "dtype": case.dtype},
            "data": {"train": {"name": "digit_sum"}},
            "optim": optim,
            "trainer": {
                "max_tokens_per_micro_batch": MAX_TOKENS,
                "gradient_checkpointing": case.checkpointing,
            },
        }
    )


def start(job: Job) -> Prepare:
    """The rank started, in this process; then its micro-batches."""
    from one_rank import packed, start_rank
    from step_floor import read_model_config
    from train_groups import make_groups, training_flops

    optim = {"betas": list(job.betas), "max_grad_norm": job.max_grad_norm}
    rank, _ = start_rank(config_of(job.case, Path(job.model), **optim))
    config = read_model_config(Path(job.model))

    def prepare(case: Case) -> TrainSide:
        batch = packed(make_groups(case), case, MAX_TOKENS)
        return TrainSide(
            step=lambda: rank.step(batch, "grpo", LEARNING_RATE).sums.loss,
            num_tokens=sum(len(m.input_ids) for m in batch),
            flops=training_flops(config, batch),
        )

    return prepare


if __name__ == "__main__":
    serve(start, Job.read(sys.argv[1]))
