"""`vlrl plan`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from vlrl.cli.shared import (
    ConfigArgument,
    DebugOption,
    JsonOption,
    OverridesArgument,
    print_result,
    read_config,
)
from vlrl.errors import ConfigError

if TYPE_CHECKING:
    from vlrl.config import Config
    from vlrl.plan.changes import Changes
    from vlrl.plan.machine import PlannedMachine
    from vlrl.plan.predict import Plan

GIB = 2**30
Method = Literal["train", "sft", "dpo", "reward-model"]


def command(
    config: ConfigArgument,
    overrides: OverridesArgument = None,
    nodes: Annotated[int, typer.Option(min=1, help="Machines with GPUs.")] = 1,
    gpus_per_node: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="GPUs of each; default: this machine's, else the fewest of 1, 2, 4, 8 on which it fits.",
        ),
    ] = None,
    memory_gib: Annotated[
        float | None,
        typer.Option(min=0.1, help="Memory of one GPU, or of the host; default: this machine's."),
    ] = None,
    host_memory_gib: Annotated[
        float | None,
        typer.Option(min=0.1, help="Host memory of a machine with GPUs; default: this machine's."),
    ] = None,
    network_gbit: Annotated[
        float | None, typer.Option(min=0.01, help="Network of a machine in Gbit/s; default: 3200.")
    ] = None,
    teraflops: Annotated[
        float | None,
        typer.Option(min=0.001, help="Matmul rate of a rank's device in 10¹²/s; default: measured here."),
    ] = None,
    device: Annotated[str, typer.Option(help="cpu or cuda; auto: what this machine has.")] = "auto",
    text_tokens: Annotated[int, typer.Option(min=1, help="Tokens of a prompt, without images.")] = 128,
    images: Annotated[int, typer.Option(min=0, help="Images of a prompt, and of each later turn.")] = 1,
    image_pixels: Annotated[
        int | None, typer.Option(min=784, help="Pixels of an image; default: processor.max_pixels.")
    ] = None,
    completion_tokens: Annotated[
        int | None, typer.Option(min=1, help="Tokens of a completion; default: rollout.max_tokens.")
    ] = None,
    longest_tokens: Annotated[
        int | None,
        typer.Option(min=1, help="Tokens of a step's longest completion; default: that of the others."),
    ] = None,
    turns: Annotated[
        int | None,
        typer.Option(
            min=1, help="Turns of an episode; default for rows of an environment: episodes.max_turns."
        ),
    ] = None,
    method: Annotated[
        Method, typer.Option(help="The command that is planned; sft, dpo and reward-model start no engine.")
    ] = "train",
    json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Predict memory and time: `vlrl plan my.yaml --device cuda --memory-gib 80 --gpus-per-node 8`.

    Nothing is loaded: a hub model's config.json is enough, and vlrl ships those of common models. Exit
    code 1 if the run does not fit, with changes that would make it fit.
    """
    loaded = read_config(config, overrides)
    generates = method == "train"

    from vlrl.plan.changes import Changes, fitting_changes
    from vlrl.plan.machine import free_bytes
    from vlrl.plan.predict import predict
    from vlrl.plan.report import change_lines
    from vlrl.plan.workload import Prompts, without_rollouts

    if device not in ("auto", "cpu", "cuda"):
        raise ConfigError(f"--device {device}: give cpu, cuda or auto")
    machine = _machine(
        loaded.model.dtype,
        device,
        nodes=nodes,
        gpus_per_node=gpus_per_node,
        memory_gib=memory_gib,
        host_memory_gib=host_memory_gib,
        teraflops=teraflops,
        network_gbit=network_gbit,
    )
    prompts = Prompts(
        text_tokens=text_tokens,
        num_images=images,
        image_pixels=image_pixels or loaded.processor.max_pixels,
        completion_tokens=completion_tokens or loaded.rollout.max_tokens,
        num_turns=turns or (loaded.episodes.max_turns if loaded.data.train[0].name == "env" else 1),
        longest_tokens=longest_tokens or 0,
    )
    if not generates:
        loaded = without_rollouts(loaded, pairs=method != "sft")
    plan = predict(loaded, prompts, machine, engine=generates)
    fits = plan.fits(machine)
    changes = Changes([], [], None) if fits else fitting_changes(loaded, prompts, machine, engine=generates)
    free = free_bytes(loaded.run_dir)
    _show(plan, machine, loaded, free, err=json)
    for line in change_lines(changes, machine) if not fits else ():
        typer.echo(line, err=json)
    total_s = plan.train_seconds * loaded.num_steps
    print_result(
        _answer(plan, machine, changes) | {"train_seconds_total": total_s, "free_disk_bytes": free}, json
    )
    if not fits:
        raise typer.Exit(1)


def _answer(plan: Plan, machine: PlannedMachine, changes: Changes) -> dict[str, Any]:
    """All numbers, what would make it fit, and the rates that times are counted with."""
    from vlrl.plan.rates import all_rates

    return {
        "fits": plan.fits(machine),
        "memory_bytes": machine.memory_bytes,
        "host_memory_bytes": machine.host_memory_bytes,
        **plan.as_json(),
        "changes": [{"change": words, "needed_bytes": p.needed_bytes} for words, p in changes.fitting],
        "tried": changes.tried,
        "rates": {name: asdict(rate) for name, rate in all_rates().items()},
    }


def _show(plan: Plan, machine: PlannedMachine, config: Config, free: int, *, err: bool) -> None:
    """Every part by name, and whether it fits."""
    from vlrl.plan.report import RANK_PARTS, gpu_lines, host_lines, time_lines, verdict

    def say(text: str) -> None:
        typer.echo(text, err=err)

    shape, work = plan.shape, plan.work
    say(f"{shape.num_params / 1e6:,.1f} M parameters, {shape.num_trained / 1e6:,.1f} M trained")
    say(f"a step: {work.step_tokens:,} tokens, {work.step_patches:,} patches, on a rank "
        f"{work.num_micro_batches} micro-batches of up to {work.micro_tokens:,} tokens")  # fmt: skip
    for name, meaning in RANK_PARTS.items():
        say(f"  {getattr(plan.memory, name) / GIB:8.2f} GiB  {meaning}")
    say(f"  {plan.memory.peak / GIB:8.2f} GiB  peak of a trainer rank")
    least = f"; {plan.engine_floor_bytes / GIB:.2f} at least" if plan.engine_floor_bytes else ""
    if plan.engine_bytes:
        say(f"  {plan.engine_bytes / GIB:8.2f} GiB  the engine, KV cache included{least}")
    if machine.device == "cpu":
        say(f"  {plan.memory.segment / GIB:8.2f} GiB  the weight segment")
    for line in (*gpu_lines(plan), *host_lines(plan, machine)):
        say(line)
    say(f"disk: {plan.disk_bytes / GIB:.2f} GiB in {config.run_dir}: a checkpoint is "
        f"{plan.checkpoint_bytes / GIB:.2f}, checkpoint.keep={config.checkpoint.keep} of them stay; rollouts "
        f"take about {plan.rollouts_bytes / GIB:.2f}, at most logging.rollouts.max_gib; "
        f"{free / GIB:.2f} GiB free{'' if free >= plan.disk_bytes else ', which is not enough'}")  # fmt: skip
    for line in time_lines(plan, config.num_steps):
        say(line)
    say(verdict(plan, machine))


def _machine(
    dtype: str,
    device: str,
    *,
    nodes: int,
    gpus_per_node: int | None,
    memory_gib: float | None,
    host_memory_gib: float | None,
    teraflops: float | None,
    network_gbit: float | None,
) -> PlannedMachine:
    """The machine that was described, and this one in what was not."""
    from vlrl.plan.machine import GPUS_OF_A_NODE, PlannedMachine, host_memory, this_machine
    from vlrl.plan.rates import NETWORK

    described = nodes > 1 or gpus_per_node is not None
    here = this_machine()
    if device == "auto":
        device = "cuda" if described else here.device
    if device == "cpu" and described:
        raise ConfigError("--nodes and --gpus-per-node describe machines with GPUs; leave out --device cpu")
    if device == "cpu":
        here = PlannedMachine("cpu", host_memory(), 0.0)
    elif here.device == "cpu":
        if memory_gib is None:
            raise ConfigError("this machine has no GPU: describe one with --memory-gib")
        here = PlannedMachine("cuda", 0, 0.0, gpus_per_node=GPUS_OF_A_NODE if nodes > 1 else None)
    known_host = here.host_memory_bytes if not described and memory_gib is None else None
    return PlannedMachine(
        device=device,
        memory_bytes=here.memory_bytes if memory_gib is None else int(memory_gib * GIB),
        rate=_rate(device, dtype) if teraflops is None else teraflops * 1e12,
        num_nodes=nodes,
        gpus_per_node=gpus_per_node or here.gpus_per_node,
        host_memory_bytes=int(host_memory_gib * GIB) if host_memory_gib is not None else known_host,
        network_bytes_per_s=NETWORK.value if network_gbit is None else network_gbit * 1e9 / 8,
    )


def _rate(device: str, dtype: str) -> float:
    """Measured, if this machine has such a device."""
    import torch

    from vlrl.plan.duration import matmul_rate
    from vlrl.plan.rates import MATMUL

    can_measure = device == "cpu" or torch.cuda.is_available()
    return matmul_rate(device, dtype) if can_measure else MATMUL[device].value
