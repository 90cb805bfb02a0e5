"""What a rank gives up for an engine comes back bit for bit, in the same storages."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch

from vlrl.trainer.device_memory import DeviceMemory

CPU = torch.device("cpu")


def engine_of() -> Any:
    """Tensors as ZeRO-3 keeps them: slices are views of one flat buffer, and masters of others."""
    torch.manual_seed(0)
    flat = torch.randn(12)
    module = torch.nn.Module()
    module.register_buffer("scale", torch.randn(3))
    for name, start in (("a", 0), ("b", 8)):
        parameter = torch.nn.Parameter(torch.empty(0))
        parameter.ds_tensor = flat.narrow(0, start, 4)  # type: ignore[attr-defined]
        module.register_parameter(name, parameter)
    masters = [torch.randn(12)]
    adam = torch.optim.AdamW([torch.nn.Parameter(m) for m in masters])
    for parameter in adam.param_groups[0]["params"]:
        parameter.grad = torch.randn(12)
    adam.step()
    optimizer = SimpleNamespace(
        fp32_partitioned_groups_flat=masters,
        optimizer=adam,
        grad_partitions_flat_buffer=torch.randn(12),
        ipg_buckets={torch.float32: SimpleNamespace(buffer=torch.randn(5))},
    )
    return SimpleNamespace(module=module, optimizer=optimizer)


def test_everything_is_given_up_and_comes_back() -> None:
    engine = engine_of()
    module, adam = engine.module, engine.optimizer.optimizer
    state = next(iter(adam.state.values()))
    kept = [
        module.a.ds_tensor,
        module.b.ds_tensor,
        module.scale,
        *engine.optimizer.fp32_partitioned_groups_flat,
    ]
    kept += [state["exp_avg"], state["exp_avg_sq"]]
    before = [tensor.clone() for tensor in kept]
    memory = DeviceMemory([engine], CPU)
    for _ in range(2):
        freed = memory.give_up()
        # flat weights, buffer, master, two moments and the count of steps; gradients and a bucket
        assert freed == 4 * (12 + 3 + 12 + 2 * 12 + 1 + 12 + 5)
        assert all(tensor.untyped_storage().nbytes() == 0 for tensor in kept)
        memory.take_back()
        assert all(torch.equal(now, then) for now, then in zip(kept, before, strict=True))
    assert not engine.optimizer.grad_partitions_flat_buffer.any()
    assert module.a.ds_tensor.untyped_storage().data_ptr() == module.b.ds_tensor.untyped_storage().data_ptr()


def test_gradients_that_wait_for_their_step_come_back_too() -> None:
    """A program may sample between forward_backward and optim_step."""
    engine = engine_of()
    gradients, memory = engine.optimizer.grad_partitions_flat_buffer, DeviceMemory([engine], CPU)
    before = gradients.clone()
    for _ in range(2):
        assert memory.give_up(keep_gradients=True) == 4 * (12 + 3 + 12 + 2 * 12 + 1 + 12 + 5)
        assert gradients.untyped_storage().nbytes() == 0
        memory.take_back()
        assert torch.equal(gradients, before)
    memory.give_up()
    memory.take_back()
    assert not gradients.any()


def test_a_reference_without_an_optimizer_is_given_up_too() -> None:
    engine = engine_of()
    engine.optimizer = SimpleNamespace()
    assert DeviceMemory([engine], CPU).give_up() == 4 * (12 + 3)


def test_what_lies_on_another_device_stays() -> None:
    engine = engine_of()
    assert DeviceMemory([engine], torch.device("meta")).give_up() == 0
    assert engine.module.scale.untyped_storage().nbytes()
