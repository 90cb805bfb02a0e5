"""Time a weight update from the ZeRO-3 trainer into a vLLM engine that is generating, against memcpy.

    python benchmarks/weight_sync.py --sizes tiny 200m --json
    python benchmarks/weight_sync.py --sizes tiny 50m --lora adapter

Random Qwen2.5-VL weights. Per size, the fastest of the rounds: the trainer writes a version (write), the
engine loads it in the middle of requests (pause: nothing is generated meanwhile), and as many bytes are
copied from one tensor to another in this process with as many threads (memcpy). `write_fraction` and
`load_fraction` are bytes/s over memcpy's; `pause_beyond_copy_ms` is the pause less one memcpy. The
median pause is what a busy machine made of it. Processor time, which a busy machine hardly changes:
`write_cpu_ms` of the rank and `load_cpu_ms` of the engine, for an update while nothing is generated; and
`token_cpu_ms` of the engine for each token of NUM_REQUESTS answers of NUM_DRAWN tokens, prompts included.

With `--lora`, language layers are trained by adapters of rank 16, and engines are sent the whole model with
the adapters merged, or the adapters alone (lora.sync).
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import torch

from vlrl import cluster
from vlrl.config import Config, parse_config
from vlrl.engine.policy import VllmPolicy
from vlrl.envs.visual.questions.digit_sum import DigitSum
from vlrl.model.tiny import build_tiny_qwen2_5_vl
from vlrl.process.json_stdout import parse_with_json, print_json
from vlrl.processors.auto import open_processor
from vlrl.protocols import Processor
from vlrl.rollout.session import Session
from vlrl.trainer.driver import Trainer
from vlrl.types import Row, Sample, Sampling

SIZES: dict[str, dict[str, int]] = {
    "tiny": {"hidden_size": 128, "num_layers": 4, "vision_hidden_size": 128, "vision_depth": 4},
    "50m": {
        "hidden_size": 768,
        "num_layers": 6,
        "vision_hidden_size": 256,
        "vision_depth": 4,
        "num_heads": 12,
    },
    "200m": {
        "hidden_size": 1280,
        "num_layers": 9,
        "vision_hidden_size": 640,
        "vision_depth": 6,
        "num_heads": 20,
    },
    "500m": {
        "hidden_size": 1792,
        "num_layers": 12,
        "vision_hidden_size": 896,
        "vision_depth": 6,
        "num_heads": 28,
    },
}
NUM_REQUESTS = 8
NUM_TOKENS = 400
NUM_DRAWN = 64


def copy_seconds(num_bytes: int, rounds: int) -> float:
    """Fastest memcpy of num_bytes, both sides touched before."""
    source, target = torch.ones(num_bytes, dtype=torch.uint8), torch.zeros(num_bytes, dtype=torch.uint8)
    return min(_seconds(lambda: target.copy_(source)) for _ in range(rounds + 1))


def _seconds(work: Any) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


async def update_while_generating(
    policy: VllmPolicy, trainer: Trainer, processor: Processor, rounds: int
) -> tuple[list[float], list[float]]:
    """Seconds of writing and of the engine's pause, for each of `rounds` updates after a first one."""
    sample = question(processor)
    generating: set[asyncio.Task[Any]] = set()

    def keep_generating() -> None:
        generating.difference_update({task for task in generating if task.done()})
        while len(generating) < NUM_REQUESTS:
            sampling = Sampling(1.0, NUM_TOKENS, len(generating))
            generating.add(asyncio.create_task(policy.generate(Session(sample, 0), sampling)))

    writes, pauses = [], []
    for version in range(1, rounds + 2):
        keep_generating()
        await asyncio.sleep(0.2)
        writes.append(await asyncio.to_thread(_seconds, trainer.write_weights))
        pauses.append(await policy.update(trainer.manifest, version))
    for task in generating:
        task.cancel()
    await asyncio.gather(*generating, return_exceptions=True)
    return writes[1:], pauses[1:]


def question(processor: Processor) -> Sample:
    """One about an image."""
    image = np.random.default_rng(0).integers(0, 256, (112, 112, 3), dtype=np.uint8)
    parts = [{"type": "image", "image": image}, {"type": "text", "text": "What is this?"}]
    asked: Row = {"id": "r", "messages": [{"role": "user", "content": parts}]}
    return processor.sample(asked)


def processor_ms(policy: VllmPolicy, trainer: Trainer, processor: Processor, rounds: int) -> dict[str, float]:
    """Processor time of an update while nothing is generated, and of a token; milliseconds."""
    begin = cpu_seconds()
    for version in range(100, 100 + rounds):
        trainer.write_weights()
        policy.load_weights(trainer.manifest, version)
    updated = cpu_seconds()
    sample, tokens = question(processor), 0

    async def generate() -> int:
        sampling = [Sampling(1.0, NUM_DRAWN, seed) for seed in range(NUM_REQUESTS)]
        generated = await asyncio.gather(*(policy.generate(Session(sample, 0), each) for each in sampling))
        return sum(len(each.token_ids) for each in generated)

    for _ in range(rounds):
        tokens += asyncio.run(generate())
    generated = cpu_seconds()
    return {
        "write_cpu_ms": (updated["TrainerRank"] - begin["TrainerRank"]) / rounds * 1e3,
        "load_cpu_ms": (updated["GeneratorActor"] - begin["GeneratorActor"]) / rounds * 1e3,
        "token_cpu_ms": (generated["GeneratorActor"] - updated["GeneratorActor"]) / tokens * 1e3,
    }


def cpu_seconds() -> dict[str, float]:
    """Processor time that this program's actors have taken so far, by their class."""
    taken = {"TrainerRank": 0.0, "GeneratorActor": 0.0}
    for process in psutil.Process().children(recursive=True):
        title = " ".join(process.cmdline())
        for name in taken:
            if title.startswith(f"ray::{name}"):
                times = process.cpu_times()
                taken[name] += times.user + times.system
    return taken


def measure(size: str, transport: str, rounds: int, lora: str | None) -> dict[str, float]:
    """The figures of one size."""
    with tempfile.TemporaryDirectory() as folder:
        model = build_tiny_qwen2_5_vl(Path(folder) / "model", DigitSum().corpus(), **SIZES[size])
        config = _config(model, Path(folder), transport, lora)
        processor = open_processor(config)
        with cluster.cluster(config):
            trainer = Trainer(config, processor.banned_token_ids)
            policy = VllmPolicy(config, processor)
            try:
                trainer.wait_ready()
                policy.wait_ready()
                writes, pauses = asyncio.run(update_while_generating(policy, trainer, processor, rounds))
                num_bytes, num_parameters = trainer.manifest.num_bytes, trainer.num_parameters
                of_processor = processor_ms(policy, trainer, processor, rounds)
            finally:
                policy.close()
                trainer.close()
    write, pause, copy = min(writes), min(pauses), copy_seconds(num_bytes, rounds)
    return {
        "num_parameters": num_parameters,
        "mib": num_bytes / 2**20,
        "write_ms": write * 1e3,
        "pause_ms": pause * 1e3,
        "pause_ms_median": statistics.median(pauses) * 1e3,
        "memcpy_ms": copy * 1e3,
        "memcpy_gb_per_s": num_bytes / copy / 1e9,
        "write_fraction": copy / write,
        "load_fraction": copy / pause,
        "pause_beyond_copy_ms": (pause - copy) * 1e3,
        **of_processor,
    }


def _config(model: Path, folder: Path, transport: str, lora: str | None) -> Config:
    return parse_config(
        {
            "run": {"dir": str(folder)},
            "model": {"path": str(model)},
            "processor": {"min_pixels": 28 * 28, "max_pixels": 168 * 168},
            "data": {"train": {"name": "digit_sum"}},
            "rewards": [{"name": "answer_exact"}],
            "generator": {"mode": "continuous", "max_model_len": 512},
            "weights": {"transport": transport},
            "lora": None if lora is None else {"rank": 16, "sync": lora},
        }
    )


def main() -> None:
    """Print the figures of every size."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=["tiny", "50m", "200m"])
    parser.add_argument(
        "--transport", choices=("shared_memory", "disk", "broadcast"), default="shared_memory"
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--lora", choices=("merged", "adapter"))
    arguments = parse_with_json(parser)
    figures = {
        size: measure(size, arguments.transport, arguments.rounds, arguments.lora) for size in arguments.sizes
    }
    if arguments.json:
        print_json({"transport": arguments.transport, **figures})
        return
    for size, of_size in figures.items():
        print(size, arguments.transport, {name: round(value, 3) for name, value in of_size.items()})


if __name__ == "__main__":
    main()
