"""Stage 2: FlexAttention at a real model's shape, against blocks: errors, time, memory and compilations.

Qwen2.5-VL-3B's heads (16 queries, 2 keys, 128 wide) in bfloat16, on trees of 12 lengths, with and without
gradient. The reference is blocks in float32; FlexAttention may be off by twice what blocks are in bfloat16.
Reaching torch.compile's limit of recompilations is a failure: what follows would run unfused, with all
scores in memory.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import stage
import torch
from torch import Tensor

from vlrl.model.tree_attention import BlockAttention, FlexAttention, TreeAttention

WIDTH = 128
NUM_BRANCHES = 8
ALLOWED = 2.0
"""Times the error of blocks in bfloat16."""


@dataclass(frozen=True)
class Size:
    """Heads of queries and of keys, tokens of the trees, and how often each pass is timed."""

    heads: int
    key_heads: int
    lengths: tuple[int, ...]
    repeats: int


FULL = Size(16, 2, (300, 700, 1500, 2048, 2500, 3100, 4096, 5200, 6500, 8192, 12000, 16000), 5)
TINY = Size(2, 1, (65, 200), 1)


def measure(options: stage.Options) -> stage.Verdict:
    stage.require_gpus(1, options)
    # Else the ninth compilation of a function runs eagerly, with one warning among many.
    torch._dynamo.config.fail_on_recompile_limit_hit = True
    device = torch.device(options.device)
    rows: list[dict[str, Any]] = []
    faults: list[str] = []
    size = TINY if options.tiny else FULL
    for length in size.lengths:
        try:
            rows.append(compare(size, length, device))
        except Exception as error:  # of a compiler: what the other lengths gave is worth keeping
            faults.append(f"{length} tokens: {stage.words_of(error)}")
            break
        faults += faults_of(rows[-1])
    if not rows:
        return stage.Verdict.of("", faults, {})
    last = rows[-1]
    worst = max(row["flex"]["errors"]["output"] for row in rows)
    words = (
        f"{len(rows)} lengths up to {last['length']}: off by {worst:.1e} at most, {last['compilations']} "
        f"compilations, blocks take {speedup(last):.2g} times as long at {last['length']}"
    )
    return stage.Verdict.of(words, faults, {"lengths": rows, "compilations": last["compilations"]})


def compare(size: Size, length: int, device: torch.device) -> dict[str, Any]:
    """One length: errors, time and memory of both, and compilations so far."""
    seen_until = torch.tensor(tree(length), dtype=torch.int32, device=device)
    generator = torch.Generator().manual_seed(length)
    exact = [
        torch.randn(1, heads, length, WIDTH, generator=generator).to(device)
        for heads in (size.heads, size.key_heads, size.key_heads)
    ]
    reference = results(BlockAttention(seen_until), exact, backward=True)
    inputs = [x.bfloat16() for x in exact]
    # On a CPU FlexAttention has no backward pass.
    backward = device.type == "cuda"
    ours = one_side(FlexAttention, seen_until, inputs, reference, backward=backward, repeats=size.repeats)
    blocks = one_side(BlockAttention, seen_until, inputs, reference, backward=True, repeats=size.repeats)
    return {"length": length, "flex": ours, "blocks": blocks, "compilations": num_compilations()}


def tree(length: int) -> np.ndarray[Any, Any]:
    """seen_until [length] of a prompt and branches that together are two thirds of it."""
    prompt = length // 3
    branches = np.array_split(np.arange(prompt, length), NUM_BRANCHES)
    return np.concatenate([np.full(prompt, length), *(np.full(len(b), b[-1] + 1) for b in branches)])


def one_side(
    kind: type[TreeAttention],
    seen_until: Tensor,
    inputs: Sequence[Tensor],
    reference: Sequence[Tensor],
    *,
    backward: bool,
    repeats: int,
) -> dict[str, Any]:
    """Errors, milliseconds (masks apart, as all layers share them) and peak MiB of one attention."""
    on_gpu = seen_until.is_cuda
    if on_gpu:
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
    attention = kind(seen_until)
    found = results(attention, inputs, backward=backward)
    with torch.no_grad():
        forward = timed(lambda: attention.attend(*inputs, scale=None, window=None), repeats)
    milliseconds = {"forward": forward}
    if backward:
        milliseconds["both"] = timed(lambda: results(attention, inputs, backward=True), repeats)
    names = ("output", "query", "key", "value")
    side: dict[str, Any] = {
        "errors": {
            name: float((ours.float() - exact).abs().max() / exact.abs().max())
            for name, ours, exact in zip(names, found, reference, strict=False)
        },
        "ms": milliseconds,
    }
    if on_gpu:
        side["peak_mib"] = (torch.cuda.max_memory_allocated() - before) / 2**20
    return side


def results(attention: TreeAttention, inputs: Sequence[Tensor], *, backward: bool) -> list[Tensor]:
    """The output, and with `backward` the gradients of queries, keys and values."""
    leaves = [x.detach().requires_grad_(backward) for x in inputs]
    output = attention.attend(*leaves, scale=None, window=None)
    gradients = torch.autograd.grad(output.float().square().sum(), leaves) if backward else []
    return [output.detach(), *gradients]


def timed(work: Any, repeats: int) -> float:
    """Median milliseconds after a first call."""
    milliseconds = []
    for _ in range(repeats + 1):
        begin = time.perf_counter()
        work()
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        milliseconds.append(1e3 * (time.perf_counter() - begin))
    return statistics.median(milliseconds[1:])


def num_compilations() -> int:
    """Graphs that torch.compile has made in this process."""
    return int(torch._dynamo.utils.counters["stats"]["unique_graphs"])


def faults_of(row: dict[str, Any]) -> list[str]:
    """What is wrong with one length's errors."""
    blocks = row["blocks"]["errors"]
    return [
        f"{row['length']} tokens: {name} is off by {error:.1e}, blocks by {blocks[name]:.1e}"
        for name, error in row["flex"]["errors"].items()
        if not error <= ALLOWED * blocks[name]  # nan too
    ]


def speedup(row: dict[str, Any]) -> float:
    """Blocks' time over FlexAttention's, of the longest pass that both have."""
    part = "both" if "both" in row["flex"]["ms"] else "forward"
    return float(row["blocks"]["ms"][part] / row["flex"]["ms"][part])


if __name__ == "__main__":
    stage.run(measure)
