"""Time the ZeRO-3 trainer alone on synthetic groups: shared prompts (trees) against plain rows.

    python benchmarks/trainer_step.py --shape 3b --dtype bfloat16 --json

Random weights of the named shape, random pictures and tokens; alternating steps of both layouts in one run;
medians. On a CUDA machine the shapes 3b and 7b are those of Qwen2.5-VL; tiny runs anywhere.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from vlrl import cluster
from vlrl.batch import Batch
from vlrl.config import Config, parse_config
from vlrl.credit import graded
from vlrl.pack import pack
from vlrl.trainer import Trainer
from vlrl.types import Group, Ledger, Media, Prompt, Sample, Score, Trajectory, Turn

PATCH, MERGE = 14, 2
TEXT = {
    "tiny": dict(hidden_size=128, intermediate_size=384, num_hidden_layers=4, num_attention_heads=4,
                 num_key_value_heads=2, vocab_size=512),
    "mid": dict(hidden_size=512, intermediate_size=1536, num_hidden_layers=8, num_attention_heads=8,
                num_key_value_heads=4, vocab_size=32000),
    "3b": dict(hidden_size=2048, intermediate_size=11008, num_hidden_layers=36, num_attention_heads=16,
               num_key_value_heads=2, vocab_size=151936),
    "7b": dict(hidden_size=3584, intermediate_size=18944, num_hidden_layers=28, num_attention_heads=28,
               num_key_value_heads=4, vocab_size=152064),
}  # fmt: skip
VISION = {
    "tiny": dict(depth=4, hidden_size=128, intermediate_size=256, num_heads=4, fullatt_block_indexes=[3]),
    "mid": dict(depth=6, hidden_size=256, intermediate_size=768, num_heads=4, fullatt_block_indexes=[5]),
    "3b": dict(depth=32, hidden_size=1280, intermediate_size=3420, num_heads=16),
    "7b": dict(depth=32, hidden_size=1280, intermediate_size=3420, num_heads=16),
}
IMAGE_PAD = 7


def build_model(shape: str, folder: Path, dtype: torch.dtype) -> None:
    """Write random weights of a Qwen2.5-VL shape to disk."""
    from transformers import AutoModelForImageTextToText, Qwen2_5_VLConfig

    text: dict[str, Any] = dict(TEXT[shape])
    half = text["hidden_size"] // text["num_attention_heads"] // 2
    side = 3 * half // 8
    text["rope_parameters"] = {
        "rope_type": "default",
        "rope_theta": 1e6,
        "mrope_section": [half - 2 * side, side, side],
    }
    config = Qwen2_5_VLConfig(
        text_config={**text, "tie_word_embeddings": shape != "7b"},
        vision_config={**VISION[shape], "out_hidden_size": text["hidden_size"]},
        image_token_id=IMAGE_PAD,
        tie_word_embeddings=shape != "7b",
    )
    torch.manual_seed(0)
    with torch.device("cuda" if torch.cuda.is_available() else "cpu"):
        model = AutoModelForImageTextToText.from_config(config, dtype=dtype)
    model.save_pretrained(folder)


def synthetic_group(index: int, args: argparse.Namespace, rng: np.random.Generator) -> Group:
    """One prompt with a square picture of args.image_tokens, and n completions of random tokens."""
    side = round(args.image_tokens**0.5) * MERGE
    frames = np.zeros((1, side * PATCH, side * PATCH, 3), np.uint8)
    media = Media("image", f"{index}", frames, frames.shape[1:3], (1, side, side), side * side // MERGE**2)
    text = rng.integers(10, 500, args.prompt_tokens)
    ids = np.concatenate([np.full(media.num_tokens, IMAGE_PAD), text]).astype(np.int64)
    positions = np.tile(np.arange(len(ids)), (3, 1)).astype(np.int64)
    sample = Sample(str(index), (), (media,), Prompt(ids, ids, positions, len(ids)))
    members = [_trajectory(sample, k, args.completion_tokens, rng) for k in range(args.group_size)]
    return graded(members, [1.0] * len(members))


def _trajectory(sample: Sample, k: int, num_tokens: int, rng: np.random.Generator) -> Trajectory:
    start, end = len(sample.prompt.token_ids), len(sample.prompt.token_ids) + num_tokens
    mask = np.arange(end) >= start
    ledger = Ledger(
        token_ids=np.concatenate([sample.prompt.token_ids, rng.integers(10, 500, num_tokens)]),
        position_ids=np.tile(np.arange(end), (3, 1)).astype(np.int64),
        loss_mask=mask,
        sampler_logprobs=np.full(end, -8.0, np.float32) * mask.astype(np.float32),
        version_spans=(),
        turns=(Turn((0, start), (start, end), num_media=len(sample.media)),),
        media=sample.media,
        media_starts=(0,) * len(sample.media),
    )
    return Trajectory(sample, k, (ledger,), completion="", outcome="ok", score=Score(0.0, {}))


def seed_of(media: Media) -> int:
    """The same of a picture that several rows have for themselves."""
    return int(media.sha256.split()[0])


def random_pixels(media: Any) -> dict[str, Any]:
    """Random patches, the same for the same medium."""
    dim = 3 * 2 * PATCH**2
    patches = [
        np.random.default_rng(seed_of(m)).standard_normal((np.prod(m.grid_thw), dim), dtype=np.float32)
        for m in media
    ]
    grids = np.array([m.grid_thw for m in media], dtype=np.int64)
    return {"pixel_values": np.concatenate(patches), "image_grid_thw": grids}


def as_a_row(trajectory: Trajectory, number: int) -> Trajectory:
    """As the field trains it: a row's picture goes through the tower with the row, equal to others or not."""
    [ledger] = trajectory.ledgers
    media = tuple(replace(m, sha256=f"{m.sha256} {number}") for m in ledger.media)
    return replace(trajectory, ledgers=(replace(ledger, media=media),))


def layouts(config: Config, args: argparse.Namespace) -> dict[str, Batch]:
    """The same trajectories as trees (a group one row) and as plain rows (a group per trajectory)."""
    rng = np.random.default_rng(0)
    groups = [synthetic_group(i, args, rng) for i in range(args.groups)]
    rows = [graded([as_a_row(t, k)], [1.0]) for g in groups for k, t in enumerate(g.trajectories)]
    batches = {}
    for name, members in (("tree", groups), ("rows", rows)):
        batches[name] = pack(
            members,
            random_pixels,
            num_ranks=config.trainer.num_ranks,
            max_tokens=config.trainer.max_tokens_per_micro_batch,
            aggregation="token",
            max_completion_tokens=args.completion_tokens,
            keep_zero_advantage=True,
        )
    return batches


def measure(args: argparse.Namespace) -> dict[str, Any]:
    """Alternate steps of both layouts; medians of args.steps each after one warm-up."""
    with tempfile.TemporaryDirectory() as folder:
        build_model(args.shape, Path(folder), getattr(torch, args.dtype))
        config = parse_config(
            {
                "model": {"path": folder, "dtype": args.dtype},
                "data": {"train": {"name": "digit_sum"}},
                "trainer": {
                    "max_tokens_per_micro_batch": args.max_tokens,
                    "gpus_per_rank": 1.0,
                    "gradient_checkpointing": args.checkpointing,
                },
                "generator": {"max_model_len": 2048},
            }
        )
        with cluster.cluster(config):
            return _measure(config, args)


def _measure(config: Config, args: argparse.Namespace) -> dict[str, Any]:
    trainer = Trainer(config, banned_token_ids=(IMAGE_PAD,))
    try:
        start_seconds = trainer.wait_ready()
        batches = layouts(config, args)
        seconds: dict[str, list[float]] = {name: [] for name in batches}
        for step in range(args.steps + 1):
            for name, batch in batches.items():
                begin = time.perf_counter()
                trainer.step(batch, "grpo", 1e-6)
                if step:
                    seconds[name].append(time.perf_counter() - begin)
        begin = time.perf_counter()
        trainer.write_weights()
        sync_seconds = time.perf_counter() - begin
        lp = [np.concatenate([m for r in trainer.logprobs(batches[n]) for m in r]) for n in ("tree", "rows")]
        drawn = args.groups * args.group_size * args.completion_tokens
        medians = {name: statistics.median(values) for name, values in seconds.items()}
        return {
            "shape": args.shape,
            "dtype": args.dtype,
            "device": cluster.device_name(),
            "num_parameters": trainer.num_parameters,
            "tree_seconds": medians["tree"],
            "rows_seconds": medians["rows"],
            "speedup": medians["rows"] / medians["tree"],
            "completion_tokens_per_s": drawn / medians["tree"],
            "write_weights_seconds": sync_seconds,
            "write_weights_gb_per_s": trainer.manifest.num_bytes / sync_seconds / 1e9,
            "mean_logprob_tree_minus_rows": float(lp[0].mean() - lp[1].mean()),
            "start_seconds": start_seconds,
            "all_seconds": seconds,
        }
    finally:
        trainer.close()


def main() -> None:
    """Parse, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--shape", choices=sorted(TEXT), default="tiny")
    parser.add_argument("--dtype", choices=["float32", "bfloat16"], default="float32")
    parser.add_argument("--groups", type=int, default=8)
    parser.add_argument("--group-size", type=int, default=8)
    parser.add_argument("--image-tokens", type=int, default=256, help="a square number")
    parser.add_argument("--prompt-tokens", type=int, default=44)
    parser.add_argument("--completion-tokens", type=int, default=48)
    parser.add_argument("--max-tokens", type=int, default=8192, help="token slots of a micro-batch")
    parser.add_argument("--checkpointing", action="store_true", help="recompute activations")
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--json", action="store_true", help="one JSON object as the last line")
    args = parser.parse_args()
    result = measure(args)
    print(f"{result['shape']} on {result['device']}: tree {result['tree_seconds']:.3f} s, "
          f"rows {result['rows_seconds']:.3f} s, {result['speedup']:.2f} times")  # fmt: skip
    if args.json:
        print(json.dumps(result))


if __name__ == "__main__":
    main()
