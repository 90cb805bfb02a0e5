"""vlrl's trainer alone as a side of train_step.py: prefix trees on a ZeRO-3 rank. Not run by hand."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

from step_job import Job
from train_side import LEARNING_RATE, MAX_TOKENS, TrainSide, serve


def side(job: Job) -> TrainSide:
    """The rank started, in this process, and its micro-batches."""
    import torch
    from step_floor import read_model_config
    from train_groups import make_groups, random_pixels, training_flops

    from vlrl.config import parse_config
    from vlrl.packing.options import PackOptions
    from vlrl.packing.pack import pack
    from vlrl.trainer.rank import TrainerRank

    if not torch.cuda.is_available():
        os.environ["DS_ACCELERATOR"] = "cpu"
    case = job.case
    config = parse_config(
        {
            "run": {"dir": job.folder},
            "model": {"path": job.model, "dtype": case.dtype},
            "data": {"train": {"name": "digit_sum"}},
            "optim": {"betas": list(job.betas), "max_grad_norm": job.max_grad_norm},
            "trainer": {
                "max_tokens_per_micro_batch": MAX_TOKENS,
                "gradient_checkpointing": case.checkpointing,
            },
        }
    )
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    rank = TrainerRank(config, (7,), 0, ("127.0.0.1", port))
    rank.start()
    [batch] = pack(
        make_groups(case),
        random_pixels,
        PackOptions(
            num_ranks=1,
            max_tokens=MAX_TOKENS,
            aggregation="token",
            max_completion_tokens=case.completion_tokens,
            keep_zero_advantage=True,
            images_once=True,
        ),
    )
    return TrainSide(
        step=lambda: rank.step(batch, "grpo", LEARNING_RATE).sums.loss,
        num_tokens=sum(len(m.input_ids) for m in batch),
        flops=training_flops(read_model_config(Path(job.model)), batch),
    )


if __name__ == "__main__":
    serve(side, Job.read(sys.argv[1]))
