"""DeepSpeed's own config of a rank, by option and by device."""

from __future__ import annotations

import pytest
from builders import make_config

from vlrl.trainer.model import deepspeed_config


@pytest.mark.parametrize(("device_type", "overlapped"), [("cpu", False), ("cuda", True)])
def test_collectives_run_beside_the_computation_on_a_gpu(device_type: str, overlapped: bool) -> None:
    options = deepspeed_config(make_config(), device_type)
    assert options["zero_optimization"]["overlap_comm"] is overlapped
