"""A plan in words: what is where, what fits, and what would make it fit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from vlrl.plan.changes import Changes
from vlrl.plan.machine import PlannedMachine
from vlrl.plan.phases import GIB, GpuMemory, HostMemory
from vlrl.plan.predict import Plan
from vlrl.plan.step_time import PARTS
from vlrl.tracking.console import duration

RANK_PARTS = {
    "weights": "weights (slice, reference, teacher, critic)",
    "gathered": "weights that ZeRO-3 has gathered",
    "gradients": "gradients and their buffer",
    "optimizer": "optimizer (float32 weights, two moments)",
    "activations": "activations of the language model",
    "vision": "activations of the tower",
    "logits": "chunk of logits",
    "update": "optimizer's step (on a GPU not at once with the last three)",
    "process": "libraries",
}
HOST_PARTS = {
    "processes": "processes",
    "copies": "what sleeps",
    "offloaded": "offloaded",
    "segments": "weights in /dev/shm",
    "features": "features of images",
}


def verdict(plan: Plan, machine: PlannedMachine) -> str:
    """Whether a plan fits a machine, and what does not."""
    if plan.needed_bytes > machine.memory_bytes:
        words = f"does not fit in the {_gib(machine.memory_bytes)} of {_place(plan)}"
        return f"{_gib(plan.needed_bytes)} {words}"
    if not plan.engine_fits:
        return (
            f"the engine needs {_gib(plan.engine_floor_bytes)} for the model and one sequence and is given "
            f"{_gib(plan.engine_bytes)}: does not fit"
        )
    if not plan.host_fits(machine):
        host = _gib(machine.host_memory_bytes or 0)
        return f"{_gib(plan.needed_host_bytes)} of host memory does not fit in the {host} of a node"
    return f"{_gib(plan.needed_bytes)} fits in the {_gib(machine.memory_bytes)} of {_place(plan)}"


def _place(plan: Plan) -> str:
    if not plan.gpus:
        return "this host"
    return f"one of {plan.num_gpus} GPUs" if plan.num_gpus > 1 else "one GPU"


def change_lines(changes: Changes, machine: PlannedMachine) -> list[str]:
    """What would make it fit; if nothing, what was tried and how far that went."""
    lines = [_line(words, plan) for words, plan in changes.fitting]
    if lines:
        return ["it would fit with any of:" if len(lines) > 1 else "it would fit with:", *lines]
    if changes.best is None:
        return ["nothing was left to try"]
    tried = dict.fromkeys(word for words in changes.tried for word in words.split())
    return [
        f"nothing fits {_gib(machine.memory_bytes)} of what was tried, alone and together:",
        *(f"  {word}" for word in tried),
        "closest comes:",
        _line(*changes.best),
    ]


def _line(words: str, plan: Plan) -> str:
    overrides = " ".join(word for word in words.split() if not word.startswith("--"))
    nodes = f" of {len(plan.hosts)} nodes" if len(plan.hosts) > 1 else ""
    gpus = f" on {plan.num_gpus} GPUs{nodes}" if plan.num_gpus > 1 else ""
    host = f", {_gib(plan.needed_host_bytes)} of host memory a node" if plan.hosts else ""
    return f"  {plan.needed_bytes / GIB:8.2f} GiB{gpus}{' with ' * bool(overrides)}{overrides}{host}"


def gpu_lines(plan: Plan) -> Iterator[str]:
    """Who is on which GPU, and how full it is in each phase; GPUs in a row that are alike in one line."""
    if not plan.gpus:
        return
    layout = plan.layout
    yield (
        f"{layout.kind}: {_count(layout.ranks, 'rank')} and {_count(layout.engines, 'engine')} on "
        f"{_count(plan.gpus, 'GPU')}; GiB in training, in generation and while weights are handed over:"
    )
    for _, alike in groupby(plan.gpus, key=_kind_of_gpu):
        row = list(alike)
        sizes = "  ".join(f"{n / GIB:6.1f}" for n in (row[0].training, row[0].generation, row[0].hand_over))
        yield f"  {sizes}  {_span(row)}: {_names(row)}"


def _count(things: Sequence[Any], name: str) -> str:
    return f"{len(things)} {name}{'' if len(things) == 1 else 's'}"


def _kind_of_gpu(gpu: GpuMemory) -> tuple[tuple[str, ...], int, int, int]:
    kinds = tuple(name.split()[0] for name in gpu.processes)
    return kinds, gpu.training, gpu.generation, gpu.hand_over


def _span(row: list[GpuMemory]) -> str:
    first, last = row[0], row[-1]
    until = f" to {'' if last.node == first.node else f'{last.node} GPU '}{last.gpu}" if len(row) > 1 else ""
    return f"{first.node} GPU {first.gpu}{until}"


def _names(row: list[GpuMemory]) -> str:
    """Such as rank 0, engine 0 of one GPU; of several rank 0 to 7, engine 0 to 7."""
    pairs = zip(row[0].processes, row[-1].processes, strict=True)
    return ", ".join(first if first == last else f"{first} to {last.split()[1]}" for first, last in pairs)


def host_lines(plan: Plan, machine: PlannedMachine) -> Iterator[str]:
    """Host memory of each node beside its GPUs; nodes in a row that are alike in one line."""
    known = machine.host_memory_bytes
    for _, alike in groupby(plan.hosts, key=_sizes_of_host):
        row = list(alike)
        where = row[0].node + (f" to {row[-1].node.split()[-1]}" if len(row) > 1 else "")
        parts = (f"{_gib(getattr(row[0], name))} {words}" for name, words in HOST_PARTS.items())
        given = "" if known is None else f" of {_gib(known)}"
        yield f"host memory, {where}: {_gib(row[0].total)}{given}: {', '.join(parts)}"


def _sizes_of_host(host: HostMemory) -> tuple[int, ...]:
    return tuple(getattr(host, name) for name in HOST_PARTS)


def time_lines(plan: Plan, num_steps: int) -> Iterator[str]:
    """A step's time, part by part on GPUs and of the trainer alone on a CPU, and the run's."""
    one, step = plan.train_seconds, plan.step
    rest = "" if step else "; sampling, rewards and environments come on top"
    yield (
        f"train: {plan.train_flops:.3g} operations, about {duration(one)} a step, "
        f"{duration(one * num_steps)} for {num_steps} steps{rest}"
    )
    if step is None:
        return
    parts = ", ".join(f"{part} {duration(getattr(step, part))}" for part in PARTS)
    together = " (generation while the trainer works)" if step.overlaps else ""
    yield f"a whole step: about {duration(step.total)}{together}: {parts}"
    share = getattr(step, step.bottleneck) / step.total
    yield (
        f"limited by {step.bottleneck}, {share:.0%} of the step; {step.tokens_per_gpu:,.0f} tokens/s a GPU. "
        "Estimates (docs/scaling.md), without rewards and environments"
    )


def _gib(num_bytes: int) -> str:
    return f"{num_bytes / GIB:.2f} GiB"
