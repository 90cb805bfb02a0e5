"""What a checkpoint holds: the model, the ranks' states, groups that were generated and not trained yet."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from pathlib import Path

from vlrl.protocols import Processor
from vlrl.rollout.buffer import Buffer, BufferLimits
from vlrl.run.checkpoint import RunState
from vlrl.trainer.driver import Trainer
from vlrl.types import Group

GENERATED_FILE = "generated.pickle"
"""The file with finished groups that were not trained yet, by position."""

GroupBuffer = Buffer[list[Group]]


def write_contents(
    folder: Path, trainer: Trainer, processor: Processor, buffer: GroupBuffer | None
) -> Mapping[str, int]:
    """Write everything but the run's own state; sizes of what the ranks wrote, see `Trainer.save`."""
    written = trainer.save(folder)
    processor.save(folder / "model")
    if buffer is not None:
        (folder / GENERATED_FILE).write_bytes(pickle.dumps(buffer.payloads()))
    return written


def restored_buffer(limits: BufferLimits, folder: Path, state: RunState) -> GroupBuffer:
    """The buffer as it was when the checkpoint was written; a new one if it had none."""
    if state.tickets is None:
        return Buffer(limits, num_cut=state.next_step)
    return Buffer.restore(limits, state.tickets, pickle.loads((folder / GENERATED_FILE).read_bytes()))
