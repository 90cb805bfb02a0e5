"""Whether a run fits on this machine, checked before its engines start."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence

from vlrl.config import Config
from vlrl.errors import ConfigError, ResourceError
from vlrl.plan.changes import fitting_changes
from vlrl.plan.machine import PlannedMachine, free_bytes, this_machine
from vlrl.plan.predict import GIB, Plan, predict
from vlrl.plan.report import change_lines, gpu_lines, verdict
from vlrl.plan.shapes import read_shape
from vlrl.plan.workload import Prompts
from vlrl.types import Sample
from vlrl.weights.keepers import SHARED_MEMORY
from vlrl.weights.segments import orphans

ERROR_MARGIN = 1.08
"""The prediction was 0.93 to 1.03 of what was measured (docs/memory.md): beyond this it cannot fit."""
HOST_MARGIN = 1.5
"""The same of host memory beside GPUs, half of which is assumed and none measured."""


def require_room(
    config: Config,
    samples: Sequence[Sample],
    note: Callable[[str], None],
    *,
    engine: bool,
    machine: PlannedMachine | None = None,
) -> None:
    """Predict what a run needs, from its model's shapes and first prompts, and compare with the machine.

    Nothing is asked of the hub. A cluster that was there before (ray.address) and a model whose shapes are
    unknown are not checked.

    Args:
        config: run.check_memory says whether a run that cannot fit is an error, a warning, or not looked for.
        samples: the first step's.
        note: called with a warning.
        engine: false for supervised training.
        machine: instead of this one.

    Raises:
        ResourceError: if it cannot fit; names the changes that would make it fit.
    """
    if config.run.check_memory == "skip" or config.ray.address is not None:
        return
    machine = machine or this_machine()
    prompts = prompts_of(samples, config)
    try:
        shape = read_shape(config, fetch=False)
    except ConfigError:
        return  # whoever loads the model says what is wrong with its path
    plan = predict(config, prompts, machine, shape, engine=engine)
    if plan.disk_bytes > (free := free_bytes(config.run_dir)):
        note(
            f"the disk may become full: checkpoints, model and {plan.rollouts_bytes / GIB:.1f} GiB of "
            f"rollouts will take {plan.disk_bytes / GIB:.1f} GiB, and {config.run_dir} has "
            f"{free / GIB:.1f} GiB free; lower checkpoint.keep or logging.rollouts.max_gib, or set run.dir"
        )
    if engine and plan.memory.segment:
        _require_shared_memory(config, plan.memory.segment, note)
    if plan.fits(machine):
        return
    changes = fitting_changes(config, prompts, machine, engine=engine)
    words = "\n".join(
        [
            f"this run is predicted not to fit: {verdict(plan, machine)}",
            *gpu_lines(plan),
            *change_lines(changes, machine),
        ]
    )
    if _is_certain(plan, machine) and config.run.check_memory == "error":
        raise ResourceError(f"{words}\nrun.check_memory=warn starts it anyway; `vlrl plan` shows every part")
    note(words)


def _is_certain(plan: Plan, machine: PlannedMachine) -> bool:
    """Whether it cannot fit even if the prediction is as wrong as it has been."""
    host = machine.host_memory_bytes
    return (
        plan.needed_bytes > ERROR_MARGIN * machine.memory_bytes
        or not plan.engine_fits
        or (host is not None and plan.needed_host_bytes > HOST_MARGIN * host)
    )


def _require_shared_memory(config: Config, segment_bytes: int, note: Callable[[str], None]) -> None:
    """The weights' segments and Ray's objects have a limit of their own, in containers a small one."""
    needed = segment_bytes + int(config.ray.object_store_gib * GIB)
    left_behind = sum(file.stat().st_size for file in orphans(SHARED_MEMORY))  # the run removes them
    if needed <= (free := shutil.disk_usage(SHARED_MEMORY).free + left_behind):
        return
    words = (
        f"the weights' segments and Ray's objects need {needed / GIB:.2f} GiB of shared memory, "
        f"{SHARED_MEMORY} has {free / GIB:.2f} GiB free; run the container with a larger --shm-size, or set "
        "weights.transport=disk"
    )
    if config.run.check_memory == "error":
        raise ResourceError(f"{words}; run.check_memory=warn starts it anyway")
    note(words)


def prompts_of(samples: Sequence[Sample], config: Config) -> Prompts:
    """The largest of some prompts, part by part; an episode can grow to generator.max_model_len."""
    counts = [sum(medium.num_tokens for medium in sample.media) for sample in samples]
    text = max(len(s.prompt.token_ids) - n for s, n in zip(samples, counts, strict=True))
    frames = [
        medium.size[0] * medium.size[1] * max(1, len(medium.frames)) for s in samples for medium in s.media
    ]
    completion = config.rollout.max_tokens
    if any(sample.env is not None for sample in samples):
        text = max(text, config.generator.max_model_len - completion - max(counts))
    return Prompts(
        text_tokens=max(1, text),
        num_images=max(len(sample.media) for sample in samples),
        image_pixels=max(frames, default=config.processor.max_pixels),
        completion_tokens=completion,
    )
