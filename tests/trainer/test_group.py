"""Joining the group of ranks."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable

from rank_processes import RankProcesses, free_port


def name_only_rank(port: int) -> None:
    os.environ.update(
        RANK="0", WORLD_SIZE="1", LOCAL_RANK="0", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port)
    )


def join_and_look(port: int) -> tuple[bool, str]:
    """Whether joining imported mlflow, and what importing it afterwards gives."""
    from vlrl.trainer.group import join_ranks

    name_only_rank(port)
    join_ranks(60.0)
    return "mlflow" in sys.modules, importlib.import_module("mlflow").__name__


def start_and_look(port: int) -> tuple[bool, bool]:
    """Whether an engine of ZeRO-3 imported torch's compiler; whether torch.compile compiles afterwards."""
    from vlrl.trainer.group import join_ranks

    name_only_rank(port)
    join_ranks(60.0)
    import deepspeed
    import torch

    module = torch.nn.Linear(4, 4)
    options = {"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 3}}
    deepspeed.initialize(model=module, optimizer=torch.optim.AdamW(module.parameters()), config=options)
    imported = "torch._inductor.compile_fx" in sys.modules
    graphs = []

    def backend(graph: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> Callable[..., object]:
        graphs.append(graph)
        return graph.forward

    torch.compile(torch.sin, backend=backend)(torch.ones(2))
    return imported, bool(graphs)


def test_a_rank_does_not_wait_for_a_compiler_that_it_does_not_use() -> None:
    """DeepSpeed imports Muon for any optimizer, whose kernels are to be compiled: two seconds of imports."""
    with RankProcesses(1, warm=False) as rank:
        assert rank.run(start_and_look, [(free_port(),)]) == [(False, True)]


def test_a_rank_does_not_wait_for_a_tracker_that_it_does_not_use() -> None:
    with RankProcesses(1, warm=False) as rank:
        assert rank.run(join_and_look, [(free_port(),)]) == [(False, "mlflow")]
