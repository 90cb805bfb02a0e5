"""Whether a run has room on this machine, asked before its engines start, and said with the remedy."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from vlrl.config import Config
from vlrl.errors import ConfigError, ResourceError
from vlrl.plan.changes import Changes, fitting_changes
from vlrl.plan.predict import GIB, Plan, PlannedMachine, predict
from vlrl.plan.shapes import read_shape
from vlrl.plan.workload import Prompts
from vlrl.tracking.console import duration
from vlrl.types import Sample

ERROR_MARGIN = 1.08
"""The prediction was 0.93 to 1.03 of what was measured (docs/memory.md): beyond this it cannot fit."""
ASSUMED_RATE = {"cpu": 1e11, "cuda": 4e14}
"""Of time, which is not asked here, nothing follows."""
SMI_TIMEOUT_S = 30.0


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
            f"the disk may become full: checkpoints and model will take {plan.disk_bytes / GIB:.1f} GiB, and "
            f"{config.run_dir} has {free / GIB:.1f} GiB free; lower checkpoint.keep or set run.dir"
        )
    if plan.fits(machine):
        return
    changes = fitting_changes(config, prompts, machine, engine=engine)
    words = "\n".join(
        [f"this run is predicted not to fit: {verdict(plan, machine)}", *change_lines(changes, machine)]
    )
    certain = plan.needed_bytes > ERROR_MARGIN * machine.memory_bytes or not plan.engine_fits
    if certain and config.run.check_memory == "error":
        raise ResourceError(f"{words}\nrun.check_memory=warn starts it anyway; `vlrl plan` shows every part")
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


def this_machine() -> PlannedMachine:
    """The smallest GPU's memory, without making a context on it; the host's where there is none."""
    command = ["nvidia-smi", "--query-gpu=memory.total", "--format=csv,noheader,nounits"]
    try:
        answer = subprocess.run(
            command, capture_output=True, text=True, timeout=SMI_TIMEOUT_S, check=True
        ).stdout
        mib = [int(line) for line in answer.split()]
    except (OSError, ValueError, subprocess.SubprocessError):
        mib = []
    device, size = ("cuda", min(mib) * 2**20) if mib else ("cpu", host_memory())
    return PlannedMachine(device, size, ASSUMED_RATE[device])


def host_memory() -> int:
    """Bytes of this host, or of the container's limit if that is less."""
    lines = Path("/proc/meminfo").read_text(encoding="utf-8").splitlines()
    total = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemTotal:"))
    limit = Path("/sys/fs/cgroup/memory.max")
    bound = limit.read_text(encoding="utf-8").strip() if limit.is_file() else "max"
    return total if bound == "max" else min(total, int(bound))


def free_bytes(folder: Path) -> int:
    """Free bytes of the disk that a folder is on, or will be."""
    folder = folder.resolve()
    while not folder.exists():
        folder = folder.parent
    return shutil.disk_usage(folder).free


def verdict(plan: Plan, machine: PlannedMachine) -> str:
    """Whether a plan fits a machine, and what does not."""
    gpu = machine.device == "cuda"
    place = f"{f'one of {plan.num_gpus} GPUs' if plan.num_gpus > 1 else 'one GPU'}" if gpu else "this host"
    if plan.needed_bytes <= machine.memory_bytes and not plan.engine_fits:
        return (
            f"the engine needs {plan.engine_floor_bytes / GIB:.2f} GiB for the model and one sequence and is "
            f"given {plan.engine_bytes / GIB:.2f} GiB: does not fit"
        )
    words = "fits in" if plan.needed_bytes <= machine.memory_bytes else "does not fit in"
    return f"{plan.needed_bytes / GIB:.2f} GiB {words} the {machine.memory_bytes / GIB:.2f} GiB of {place}"


def change_lines(changes: Changes, machine: PlannedMachine) -> list[str]:
    """What would make it fit; if nothing, what was tried and how far that went."""
    lines = [_line(keys, plan) for keys, plan in changes.fitting]
    if lines:
        return ["it would fit with any of:" if len(lines) > 1 else "it would fit with:", *lines]
    if changes.best is None:
        return ["nothing was left to try"]
    tried = dict.fromkeys(word for keys in changes.tried for word in keys.split())
    return [
        f"nothing fits {machine.memory_bytes / GIB:.2f} GiB of what was tried, alone and together:",
        *(f"  {word}" for word in tried),
        "closest comes:",
        _line(*changes.best),
    ]


def _line(keys: str, plan: Plan) -> str:
    gpus = f" on {plan.num_gpus} GPUs" if plan.num_gpus > 1 else ""
    host = plan.memory.host / GIB
    offloaded = f", {host:.0f} GiB of host memory a rank" if host >= 1 else ""
    return f"  {plan.needed_bytes / GIB:8.2f} GiB with {keys}{gpus}{offloaded}"


def time_words(plan: Plan, num_steps: int) -> str:
    """The trainer's time of a step and of a run."""
    whole = duration(plan.train_seconds * num_steps)
    return f"about {duration(plan.train_seconds)} a step, {whole} for {num_steps} steps"
