"""Peak memory and time of the head's logprobs, forward and backward: the plain formula against chunks.

    python benchmarks/head_memory.py --chunks 16 64 256 1024 --json

Each variant runs in a process of its own, whose peak resident memory is read before and after.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import statistics
import time
from collections.abc import Callable
from typing import Any

from vlrl.process.json_stdout import parse_with_json, print_json

MIB = 2**20


def variants(chunks: list[int]) -> dict[str, int | None]:
    """Name to MiB of a chunk; None is the plain formula."""
    return {"plain": None, **{f"{mib} MiB": mib for mib in chunks}}


def run(args: argparse.Namespace, chunk_mib: int | None, results: Any) -> None:
    """One variant: (extra peak bytes, median seconds of a forward and backward pass)."""
    import torch

    from vlrl.model.head_logprobs import HeadLogprobs

    torch.manual_seed(0)
    dtype = getattr(torch, args.dtype)
    hidden = torch.randn(args.tokens, args.width, dtype=dtype, requires_grad=True)
    linear = torch.nn.Linear(args.width, args.vocab, bias=False, dtype=dtype)
    targets = torch.randint(0, args.vocab, (args.tokens,))
    banned = [3, 5]

    def plain() -> Any:
        logits = linear(hidden).float()
        logits[:, banned] = -torch.inf
        logits = logits / 0.9
        normalizer = torch.logsumexp(logits, -1)
        with torch.no_grad():
            probs = torch.softmax(logits, -1)
            (normalizer - (probs * logits.masked_fill(probs == 0, 0.0)).sum(-1)).sum()
        return (logits.gather(1, targets[:, None])[:, 0] - normalizer).sum()

    step: Callable[[], Any] = plain
    if chunk_mib is not None:
        head = HeadLogprobs(linear, temperature=0.9, banned_token_ids=banned, chunk_bytes=chunk_mib * MIB)
        step = lambda: head(hidden, targets)[0].sum()  # noqa: E731
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    seconds = []
    for _ in range(args.steps):
        linear.weight.grad = hidden.grad = None
        begin = time.perf_counter()
        step().backward()
        seconds.append(time.perf_counter() - begin)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    results.put((peak - before, statistics.median(seconds)))


def measure(args: argparse.Namespace) -> dict[str, Any]:
    context = multiprocessing.get_context("spawn")
    found = {}
    for name, chunk in variants(args.chunks).items():
        results = context.SimpleQueue()
        process = context.Process(target=run, args=(args, chunk, results))
        process.start()
        process.join()
        extra, seconds = results.get()
        found[name] = {"extra_peak_mib": round(extra / MIB, 1), "seconds": round(seconds, 3)}
    logits_mib = args.tokens * args.vocab * 4 / MIB
    best = min((v for k, v in found.items() if k != "plain"), key=lambda v: v["extra_peak_mib"])
    return {
        "tokens": args.tokens,
        "width": args.width,
        "vocab": args.vocab,
        "dtype": args.dtype,
        "all_logits_mib": round(logits_mib, 1),
        "variants": found,
        "memory_ratio": best["extra_peak_mib"] / found["plain"]["extra_peak_mib"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--tokens", type=int, default=1024)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--vocab", type=int, default=151936)
    parser.add_argument("--dtype", choices=["float32", "bfloat16"], default="float32")
    parser.add_argument("--chunks", type=int, nargs="+", default=[16, 64, 256, 1024], help="MiB")
    parser.add_argument("--steps", type=int, default=3)
    args = parse_with_json(parser)
    result = measure(args)
    print(f"all logits in float32: {result['all_logits_mib']} MiB")
    for name, values in result["variants"].items():
        print(f"{name:>9}: {values['extra_peak_mib']:8.1f} MiB more, {values['seconds']:.3f} s")
    if args.json:
        print_json(result)


if __name__ == "__main__":
    main()
