"""CPU seconds of attention over packed trees, forward and backward: nodes, blocks and a dense mask.

    .venv/bin/python benchmarks/tree_attention.py --json

One layer of 6 heads of 64 with 3 for keys, float32, one thread; seconds of this process alone, so that other
programs matter little. vlrl's sizes are the defaults of BLOCK_TOKENS in vlrl/model/tree_attention.py and of
TOGETHER in vlrl/model/kernels/nodes.py. Dense masks are left out where they would take more than 1 GiB.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import torch

from vlrl.model import tree_attention
from vlrl.model.kernels import nodes
from vlrl.model.kernels.nodes import NodeAttention
from vlrl.model.tree_attention import BlockAttention, DenseAttention
from vlrl.process.json_stdout import parse_with_json, print_json

BLOCKS = (32, 64, 128, 256, 512)
NODES = (1, 32, 64, 128)
MOST_DENSE_TOKENS = 2**14


def seen_until(num_trees: int, num_shared: int, branches: list[int]) -> torch.Tensor:
    """Trees of one shared part each, and branches of the given sizes."""
    size = num_shared + sum(branches)
    found: list[int] = []
    for start in range(0, num_trees * size, size):
        found += [start + size] * num_shared
        for branch in branches:
            found += [len(found) + branch] * branch
    return torch.tensor(found, dtype=torch.int32)


CASES = {
    "16 groups of 8 × 16 after 33": (16, 33, [15] * 8),
    "4 groups of 8 × 48 after 300": (4, 300, [47] * 8),
    "8 episodes of 600 after 80": (1, 80, [600] * 8),
    "one ledger of 3000": (1, 3000, []),
    "4 groups of 32 × 128 after 300": (4, 300, [127] * 32),
    "8 × 512 after 4800": (1, 4800, [511] * 8),
}


def seconds(attention: Any, inputs: list[torch.Tensor], repeats: int) -> float:
    """Fewest CPU seconds of a forward and backward pass."""
    found = []
    for _ in range(repeats + 1):  # the first makes the masks
        begin = time.process_time()
        output = attention.attend(*inputs, scale=None, window=None)
        torch.autograd.grad(output.sum(), inputs)
        found.append(time.process_time() - begin)
    return min(found[1:])


def measure(repeats: int) -> dict[str, dict[str, float]]:
    """Case by case, way by way."""
    torch.set_num_threads(1)
    results: dict[str, dict[str, float]] = {}
    for name, case in CASES.items():
        seen = seen_until(*case)
        inputs = [torch.randn(1, heads, len(seen), 64, requires_grad=True) for heads in (6, 3, 3)]
        found = results[name] = {}
        if len(seen) <= MOST_DENSE_TOKENS:
            found["dense"] = seconds(DenseAttention(seen), inputs, repeats)
        for size in BLOCKS:
            tree_attention.BLOCK_TOKENS = size
            found[f"blocks of {size}"] = seconds(BlockAttention(seen), inputs, repeats)
        for size in NODES:
            nodes.TOGETHER = size
            found[f"nodes, {size} together"] = seconds(NodeAttention(seen), inputs, repeats)
        ways = (f"{way} {1e3 * s:.0f} ms" for way, s in results[name].items())
        print(f"{name}: {', '.join(ways)}", flush=True)
    return results


def main() -> None:
    """Parse, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--repeats", type=int, default=3)
    args = parse_with_json(parser)
    results = measure(args.repeats)
    if args.json:
        print_json(results)


if __name__ == "__main__":
    main()
