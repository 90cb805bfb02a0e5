"""What sums in a fixed order cost: seconds of forward and backward over one packed batch, side by side.

    .venv/bin/python benchmarks/ordered.py --json

index      trained tokens taken by plain indexing, whose backward pass adds in whatever order threads arrive
ordered    by `vlrl.algorithm.ordered.rows_of`
strict     the same under torch.use_deterministic_algorithms: trainer.deterministic=true

Before that the lookup alone, forward and backward, at sizes (tokens, width, trained tokens) of larger models.
The sides take turns, in an order that changes from round to round; printed are medians and the median of each
round's ratio to `index`. On a GPU the model is bfloat16.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from vlrl.process.json_stdout import parse_with_json, print_json

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
SIDES = ("index", "ordered", "strict")
LOOKUPS = ((810, 128, 768), (4096, 2048, 3000), (8192, 1024, 8000))


def make_batch(folder: Path, groups: int, size: int, length: int) -> tuple[Any, Any, Any]:
    """(model, banned token ids, micro-batch) of a tiny Qwen2.5-VL: groups of `size` completions."""
    from transformers import AutoModelForImageTextToText

    from vlrl.algorithm.credit import group_with_advantages
    from vlrl.config import parse_config
    from vlrl.envs.visual.questions.digit_sum import DigitSum
    from vlrl.model.tiny import build_tiny_qwen2_5_vl
    from vlrl.packing.options import PackOptions
    from vlrl.packing.pack import pack
    from vlrl.processors.auto import open_processor
    from vlrl.rollout.session import Session
    from vlrl.types import Generation, Score, VersionSpan

    build_tiny_qwen2_5_vl(folder, DigitSum().corpus())
    config = parse_config(
        {
            "model": {"path": str(folder)},
            "data": {"train": {"name": "digit_sum"}},
            "rewards": [{"name": "answer_exact"}],
            "generator": {"max_model_len": 4096},
        }
    )
    processor = open_processor(config)
    rng = np.random.default_rng(0)
    made = []
    for number in range(groups):
        image = rng.integers(0, 255, (112, 112, 3), dtype=np.uint8)
        parts = [{"type": "image", "image": image}, {"type": "text", "text": f"Add {number}."}]
        sample = processor.sample({"id": str(number), "messages": [{"role": "user", "content": parts}]})
        members = []
        for index in range(size):
            session = Session(sample, index)
            session.append_action(
                Generation(
                    rng.integers(0, 200, length),
                    rng.normal(-3, 0.3, length).astype(np.float32),
                    (VersionSpan(0, 0, length),),
                    True,
                )
            )
            members.append(session.trajectory("", "ok", 0.0))
            members[-1].score = Score(float(index), {})
        made.append(group_with_advantages(members, rng.normal(size=size).tolist()))
    [[batch]] = pack(
        made,
        processor.pixels,
        PackOptions(
            num_ranks=1,
            max_tokens=2**20,
            aggregation="token",
            max_completion_tokens=length,
            keep_zero_advantage=True,
        ),
    )
    model = AutoModelForImageTextToText.from_pretrained(folder, attn_implementation="sdpa").train()
    return model, processor.banned_token_ids, batch


def lookups(rounds: int) -> dict[str, dict[str, float]]:
    """Median milliseconds of taking trained tokens' hidden states, forward and backward, by size and side."""
    import torch

    from vlrl.algorithm.ordered import rows_of

    device = "cuda" if torch.cuda.is_available() else "cpu"
    found: dict[str, dict[str, float]] = {}
    for tokens, width, trained in LOOKUPS:
        table = torch.randn(tokens, width, device=device, requires_grad=True)
        index, grad = torch.randint(0, tokens, (trained,), device=device), torch.randn(trained, width)
        seconds: dict[str, list[float]] = {"index": [], "ordered": []}
        for _ in range(rounds + 1):
            for side, values in seconds.items():
                begin = time.perf_counter()
                picked = table[index] if side == "index" else rows_of(table, index)
                torch.autograd.grad(picked, table, grad.to(device))
                if device == "cuda":
                    torch.cuda.synchronize()
                values.append(time.perf_counter() - begin)
        size = f"{tokens} x {width}, {trained}"
        found[size] = {side: 1e3 * statistics.median(values[1:]) for side, values in seconds.items()}
    return found


def measure(rounds: int, groups: int, size: int, length: int) -> dict[str, Any]:
    """Seconds of every round, side by side."""
    import torch

    from vlrl.algorithm import ordered
    from vlrl.model import logprobs

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    with tempfile.TemporaryDirectory() as folder:
        model, banned, batch = make_batch(Path(folder) / "tiny", groups, size, length)
    model = model.to(device, torch.bfloat16 if device.type == "cuda" else torch.float32)
    wrapped = logprobs.TreeLogprobs(model, temperature=1.0, banned_token_ids=banned)
    on_device = logprobs.DeviceBatch.of(batch, device)
    seconds: dict[str, list[float]] = {side: [] for side in SIDES}
    for number in range(rounds + 1):  # the first one warms up
        for side in np.random.default_rng(number).permutation(SIDES).tolist():
            logprobs.rows_of = (lambda table, index: table[index]) if side == "index" else ordered.rows_of
            ordered.choose_ordered(side == "strict")
            model.zero_grad(set_to_none=True)
            begin = time.perf_counter()
            values, _ = wrapped(on_device)
            (values * on_device.weights * on_device.advantages).sum().backward()
            if device.type == "cuda":
                torch.cuda.synchronize()
            if number:
                seconds[side].append(time.perf_counter() - begin)
    ratios = {s: [a / b for a, b in zip(seconds[s], seconds["index"], strict=True)] for s in SIDES}
    return {
        "device": str(device),
        "num_tokens": len(batch.input_ids),
        "num_trained": len(batch.target_ids),
        "seconds": {side: statistics.median(values) for side, values in seconds.items()},
        "ratio": {side: statistics.median(values) for side, values in ratios.items()},
    }


def main() -> None:
    """Parse, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--groups", type=int, default=16)
    parser.add_argument("--size", type=int, default=8, help="completions of a group")
    parser.add_argument("--length", type=int, default=24, help="tokens of a completion")
    args = parse_with_json(parser)
    found = {"lookup_ms": lookups(args.rounds), **measure(args.rounds, args.groups, args.size, args.length)}
    if args.json:
        print_json(found)
        return
    for size, of_sides in found["lookup_ms"].items():
        print(f"lookup {size}: " + ", ".join(f"{side} {ms:.2f} ms" for side, ms in of_sides.items()))
    print(f"{found['num_tokens']:,} tokens, {found['num_trained']:,} trained, on {found['device']}")
    for side in SIDES:
        print(f"{side:8} {1e3 * found['seconds'][side]:8.1f} ms {found['ratio'][side]:6.3f}")


if __name__ == "__main__":
    main()
