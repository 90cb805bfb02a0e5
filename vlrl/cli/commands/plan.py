"""`vlrl plan`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from vlrl.cli.shared import ConfigArgument, DebugOption, JsonOption, OverridesArgument, print_result
from vlrl.config import load_config
from vlrl.errors import ConfigError

if TYPE_CHECKING:
    from vlrl.config import Config
    from vlrl.plan.predict import Plan, PlannedMachine

GIB = 2**30
MEANINGS = {
    "weights": "weights (slice, reference, gathered)",
    "gradients": "gradients and their buffer",
    "optimizer": "optimizer (float32 weights, two moments)",
    "activations": "activations of the language model",
    "vision": "activations of the tower",
    "logits": "chunk of logits",
    "update": "optimizer's step (on a GPU not at once with the last three)",
    "process": "libraries",
}


def command(
    config: ConfigArgument,
    overrides: OverridesArgument = None,
    text_tokens: Annotated[int, typer.Option(min=1, help="Tokens of a prompt, without images.")] = 128,
    images: Annotated[int, typer.Option(min=0, help="Images of a prompt.")] = 1,
    image_pixels: Annotated[
        int | None, typer.Option(min=784, help="Pixels of an image; processor.max_pixels unless given.")
    ] = None,
    completion_tokens: Annotated[
        int | None, typer.Option(min=1, help="Tokens of a completion; rollout.max_tokens unless given.")
    ] = None,
    memory_gib: Annotated[
        float | None, typer.Option(min=0.1, help="Memory of one GPU, or of the host; this machine's.")
    ] = None,
    teraflops: Annotated[
        float | None, typer.Option(min=0.001, help="Matmul rate of a rank's device, 10¹²/s; measured here.")
    ] = None,
    device: Annotated[str, typer.Option(help="cpu or cuda; what this machine has.")] = "auto",
    json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Predict memory and time: `vlrl plan my.yaml --device cuda --memory-gib 80 --teraflops 700`.

    Nothing is loaded: of a hub model config.json is enough, and that of common models comes with vlrl. Exit
    code 1 if the run does not fit, with changes that would make it fit.
    """
    loaded = load_config(config, overrides or [])

    from vlrl.plan.changes import Changes, fitting_changes
    from vlrl.plan.predict import predict
    from vlrl.plan.room import change_lines, free_bytes
    from vlrl.plan.workload import Prompts

    if device not in ("auto", "cpu", "cuda"):
        raise ConfigError(f"--device {device}: give cpu, cuda or auto")
    machine = _machine(loaded.model.dtype, device, memory_gib, teraflops)
    prompts = Prompts(
        text_tokens=text_tokens,
        num_images=images,
        image_pixels=image_pixels or loaded.processor.max_pixels,
        completion_tokens=completion_tokens or loaded.rollout.max_tokens,
    )
    plan = predict(loaded, prompts, machine)
    fits = plan.fits(machine)
    changes = Changes([], [], None) if fits else fitting_changes(loaded, prompts, machine)
    free = free_bytes(loaded.run_dir)
    _show(plan, machine, loaded, free, err=json)
    for line in change_lines(changes, machine) if not fits else ():
        typer.echo(line, err=json)
    found = [{"change": key, "needed_bytes": changed.needed_bytes} for key, changed in changes.fitting]
    total_s = plan.train_seconds * loaded.num_steps
    answer = {"fits": fits, "memory_bytes": machine.memory_bytes, **plan.as_json(), "changes": found}
    print_result(
        answer | {"tried": changes.tried, "train_seconds_total": total_s, "free_disk_bytes": free}, json
    )
    if not fits:
        raise typer.Exit(1)


def _show(plan: Plan, machine: PlannedMachine, config: Config, free: int, *, err: bool) -> None:
    """Every part by name, and whether it fits."""
    from vlrl.plan.room import time_words, verdict

    def say(text: str) -> None:
        typer.echo(text, err=err)

    shape, work = plan.shape, plan.work
    say(f"{shape.num_params / 1e6:,.1f} M parameters, {shape.num_trained / 1e6:,.1f} M trained")
    say(f"a step: {work.step_tokens:,} tokens, {work.step_patches:,} patches, on a rank "
        f"{work.num_micro_batches} micro-batches of up to {work.micro_tokens:,} tokens")  # fmt: skip
    for name, meaning in MEANINGS.items():
        say(f"  {getattr(plan.memory, name) / GIB:8.2f} GiB  {meaning}")
    say(f"  {plan.memory.peak / GIB:8.2f} GiB  peak of a trainer rank")
    least = f"; {plan.engine_floor_bytes / GIB:.2f} at least" if plan.engine_floor_bytes else ""
    say(f"  {plan.engine_bytes / GIB:8.2f} GiB  the engine, KV cache included{least}")
    if machine.device == "cuda":
        say(f"host: {(plan.memory.segment + plan.memory.host) / GIB:.2f} GiB (weight segment, offloaded)")
    else:
        say(f"  {plan.memory.segment / GIB:8.2f} GiB  the weight segment")
    say(f"disk: {plan.disk_bytes / GIB:.2f} GiB in {config.run_dir}: a checkpoint is "
        f"{plan.checkpoint_bytes / GIB:.2f}, checkpoint.keep={config.checkpoint.keep} of them stay; "
        f"{free / GIB:.2f} GiB free{'' if free >= plan.disk_bytes else ', which is not enough'}")  # fmt: skip
    say(f"train: {plan.train_flops:.3g} operations, {time_words(plan, config.num_steps)}; sampling, rewards "
        "and environments come on top")  # fmt: skip
    say(verdict(plan, machine))


def _machine(dtype: str, device: str, memory_gib: float | None, teraflops: float | None) -> PlannedMachine:
    """The machine that was described, and this one in what was not."""
    import torch

    from vlrl.plan.duration import matmul_rate
    from vlrl.plan.predict import PlannedMachine
    from vlrl.plan.room import host_memory

    here = "cuda" if torch.cuda.is_available() else "cpu"
    chosen = here if device == "auto" else device
    if chosen == "cuda" and here == "cpu" and (memory_gib is None or teraflops is None):
        raise ConfigError("--device cuda on a machine without one: give --memory-gib and --teraflops too")
    if memory_gib is not None:
        memory = int(memory_gib * GIB)
    elif chosen == "cuda":
        memory = torch.cuda.get_device_properties(0).total_memory
    else:
        memory = host_memory()
    rate = teraflops * 1e12 if teraflops is not None else matmul_rate(chosen, dtype)
    return PlannedMachine(chosen, memory, rate)
