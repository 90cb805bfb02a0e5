"""`vlrl plan`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

import typer

from vlrl.cli.shared import ConfigArgument, DebugOption, JsonOption, OverridesArgument, print_result
from vlrl.config import load_config
from vlrl.errors import ConfigError

if TYPE_CHECKING:
    from vlrl.plan.predict import Machine, Plan

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
    text_tokens: Annotated[int, typer.Option(min=1, help="Tokens of a prompt, without pictures.")] = 128,
    pictures: Annotated[int, typer.Option(min=0, help="Pictures of a prompt.")] = 1,
    picture_pixels: Annotated[
        int | None, typer.Option(min=784, help="Pixels of a picture; processor.max_pixels unless given.")
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
    """Predict memory and time before anything is loaded: `vlrl plan configs/vlm_r1_rec.yaml --memory-gib 80`.

    Of a hub model only config.json is read. Exit code 1 if the run does not fit, with changes that would.
    """
    loaded = load_config(config, overrides or [])

    from vlrl.plan.predict import fitting_changes, predict
    from vlrl.plan.workload import Prompts

    if device not in ("auto", "cpu", "cuda"):
        raise ConfigError(f"--device {device}: give cpu, cuda or auto")
    machine = _machine(loaded.model.dtype, device, memory_gib, teraflops)
    prompts = Prompts(
        text_tokens=text_tokens,
        num_pictures=pictures,
        picture_pixels=picture_pixels or loaded.processor.max_pixels,
        completion_tokens=completion_tokens or loaded.rollout.max_tokens,
    )
    plan = predict(loaded, prompts, machine)
    fits = plan.needed_bytes <= machine.memory_bytes
    changes = [] if fits else fitting_changes(loaded, prompts, machine)
    _show(plan, machine, err=json)
    for key, changed in changes:
        typer.echo(f"  {changed.needed_bytes / GIB:8.2f} GiB with {key}", err=json)
    found = [{"change": key, "needed_bytes": changed.needed_bytes} for key, changed in changes]
    print_result(
        {"fits": fits, "memory_bytes": machine.memory_bytes, **plan.as_json(), "changes": found}, json
    )
    if not fits:
        raise typer.Exit(1)


def _show(plan: Plan, machine: Machine, *, err: bool) -> None:
    """Every part by name, and whether it fits."""

    def say(text: str) -> None:
        typer.echo(text, err=err)

    shape, work = plan.shape, plan.work
    say(f"{shape.num_params / 1e6:,.1f} M parameters, {shape.num_trained / 1e6:,.1f} M trained")
    say(f"a step: {work.step_tokens:,} tokens, {work.step_patches:,} patches, on a rank "
        f"{work.num_micro_batches} micro-batches of up to {work.micro_tokens:,} tokens")  # fmt: skip
    for name, meaning in MEANINGS.items():
        say(f"  {getattr(plan.memory, name) / GIB:8.2f} GiB  {meaning}")
    say(f"  {plan.memory.peak / GIB:8.2f} GiB  peak of a trainer rank")
    say(f"  {plan.engine_bytes / GIB:8.2f} GiB  the engine, KV cache included")
    if machine.device == "cuda":
        say(f"host: {(plan.memory.segment + plan.memory.host) / GIB:.2f} GiB (weight segment, offloaded)")
    else:
        say(f"  {plan.memory.segment / GIB:8.2f} GiB  the weight segment")
    say(f"train: {plan.train_flops:.3g} operations, about {plan.train_seconds:.2f} s a step")
    verdict = "fits in" if plan.needed_bytes <= machine.memory_bytes else "does not fit in"
    say(f"{plan.needed_bytes / GIB:.2f} GiB {verdict} the {machine.memory_bytes / GIB:.2f} GiB "
        f"of {'one GPU' if machine.device == 'cuda' else 'this host'}")  # fmt: skip


def _machine(dtype: str, device: str, memory_gib: float | None, teraflops: float | None) -> Machine:
    """The machine that was described, and this one in what was not."""
    import torch

    from vlrl.plan.duration import matmul_rate
    from vlrl.plan.predict import Machine

    here = "cuda" if torch.cuda.is_available() else "cpu"
    chosen = here if device == "auto" else device
    if chosen == "cuda" and here == "cpu" and (memory_gib is None or teraflops is None):
        raise ConfigError("--device cuda on a machine without one: give --memory-gib and --teraflops too")
    if memory_gib is not None:
        memory = int(memory_gib * GIB)
    elif chosen == "cuda":
        memory = torch.cuda.get_device_properties(0).total_memory
    else:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    rate = teraflops * 1e12 if teraflops is not None else matmul_rate(chosen, dtype)
    return Machine(chosen, memory, rate)
