"""Joining the group of ranks."""

from __future__ import annotations

import importlib
import os
import sys

from rank_processes import RankProcesses, free_port


def join_and_look(port: int) -> tuple[bool, str]:
    """Whether joining imported mlflow, and what importing it afterwards gives."""
    from vlrl.trainer.group import join_ranks

    os.environ.update(
        RANK="0", WORLD_SIZE="1", LOCAL_RANK="0", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port)
    )
    join_ranks(60.0)
    return "mlflow" in sys.modules, importlib.import_module("mlflow").__name__


def test_a_rank_does_not_wait_for_a_tracker_that_it_does_not_use() -> None:
    with RankProcesses(1) as rank:
        assert rank.run(join_and_look, [(free_port(),)]) == [(False, "mlflow")]
