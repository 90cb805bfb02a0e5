"""A replica takes the GPUs that its server is split over."""

from __future__ import annotations

from pathlib import Path

import pytest

from vlrl.engine.api.options import ModelServerOptions
from vlrl.engine.api.servers import replica_command


@pytest.mark.parametrize(
    ("extra", "on_gpu", "num_gpus"),
    [
        ([], True, 2),
        (["--max-num-seqs", "8", "--tensor-parallel-size", "4"], True, 4),
        (["--tensor-parallel-size=1"], True, 1),
        (["-tp", "4"], True, 4),
        (["-tp", "4"], False, 0),
    ],
)
def test_as_many_gpus_as_the_server_is_split_over(
    tiny_model: Path, extra: list[str], on_gpu: bool, num_gpus: int
) -> None:
    config = {"model": {"path": str(tiny_model)}, "generator": {"tensor_parallel_size": 2}}
    command = replica_command(ModelServerOptions("tiny", config), extra, on_gpu=on_gpu)
    assert command.num_gpus == num_gpus
    assert list(command.arguments)[-len(extra) :] == extra or not extra
