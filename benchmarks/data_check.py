"""How long `vlrl data check` takes on 10,000 rows of an image each.

    python benchmarks/data_check.py --json

The images are JPEGs of 0.1 to 1 megapixel, cut from noisy gradients, so that they compress and decode like
photographs. The model is the tiny Qwen2.5-VL: its processor is the real one, and what it counts does not
depend on the weights. Both built-in rewards are dry-run. Target: under 180 s on 2 cores.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from PIL import Image

from vlrl.process.json_stdout import parse_with_json, print_json

TARGET_S = 180.0
NUM_SCENES = 24
INSTRUCTION = "How many balls are in the picture? Answer with <think>…</think><answer>number</answer>."


def scene(seed: int) -> Image.Image:
    """1500×1200 pixels of waves with noise of two scales."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:1200, 0:1500].astype(np.float32)
    waves = [
        np.sin(x / rng.uniform(60, 400) + y / rng.uniform(60, 400) + rng.uniform(0, 6)) for _ in range(3)
    ]
    coarse = Image.fromarray(rng.integers(0, 256, (150, 188, 3), dtype=np.uint8)).resize((1500, 1200))
    pixels = (
        90 + 45 * np.stack(waves, axis=-1) + 0.25 * np.asarray(coarse) + rng.normal(0, 7, (1200, 1500, 3))
    )
    return Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8))


def write_images(folder: str, first: int, step: int, num_rows: int) -> None:
    """Every step-th image: a random cut of a scene."""
    scenes = [scene(seed) for seed in range(NUM_SCENES)]
    for row in range(first, num_rows, step):
        rng = np.random.default_rng(row)
        area, ratio = rng.uniform(1e5, 1e6), rng.uniform(0.6, 1.6)
        width, height = min(1500, int((area * ratio) ** 0.5)), min(1200, int((area / ratio) ** 0.5))
        x, y = int(rng.integers(0, 1501 - width)), int(rng.integers(0, 1201 - height))
        image = scenes[row % NUM_SCENES].crop((x, y, x + width, y + height))
        image.save(Path(folder) / f"{row}.jpg", quality=90)


def write_rows(folder: Path, num_rows: int, num_processes: int) -> None:
    """The images and rows.jsonl."""
    context = get_context("spawn")
    jobs = [
        context.Process(target=write_images, args=(str(folder), first, num_processes, num_rows))
        for first in range(num_processes)
    ]
    for job in jobs:
        job.start()
    for job in jobs:
        job.join()
    lines = []
    for row in range(num_rows):
        parts = [{"type": "image", "image": f"{row}.jpg"}, {"type": "text", "text": INSTRUCTION}]
        lines.append(
            {"id": str(row), "messages": [{"role": "user", "content": parts}], "answer": str(row % 10)}
        )
    (folder / "rows.jsonl").write_text("\n".join(json.dumps(line) for line in lines) + "\n")


def write_config(folder: Path) -> Path:
    """A run's config on these rows, with the tiny model."""
    from vlrl.model.tiny import build_tiny_qwen2_5_vl

    build_tiny_qwen2_5_vl(folder / "tiny", [INSTRUCTION] * 50)
    config = {
        "model": {"path": str(folder / "tiny")},
        "data": {"train": {"name": str(folder / "rows.jsonl")}},
        "rewards": [{"name": "answer_exact"}, {"name": "think_answer_format", "weight": 0.1}],
        "generator": {"max_model_len": 4096},
    }
    path = folder / "check.yaml"
    path.write_text(json.dumps(config))  # JSON is YAML
    return path


def measure(config: Path, num_workers: int | None) -> dict[str, float]:
    """Seconds of the whole command, from its start to its exit, and what it found."""
    workers = ["--workers", str(num_workers)] if num_workers else []
    begin = time.perf_counter()
    child = subprocess.run(
        [Path(sys.executable).parent / "vlrl", "data", "check", str(config), "--json", *workers],
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    seconds = time.perf_counter() - begin
    result = json.loads(child.stdout.strip().splitlines()[-1])
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    return {
        "seconds": seconds,
        "num_rows": result["num_rows"],
        "num_bad": result["num_bad"],
        "peak_mib": peak,
    }


def main() -> None:
    """Make the data, check it, print the figure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--workers", type=int, help="processes; by default what the command takes")
    arguments = parse_with_json(parser)
    with tempfile.TemporaryDirectory(prefix="vlrl-data-check-") as name:
        folder = Path(name)
        write_rows(folder, arguments.rows, len(os.sched_getaffinity(0)))
        mib = sum(file.stat().st_size for file in folder.glob("*.jpg")) / 2**20
        found = measure(write_config(folder), arguments.workers)
    found |= {"jpeg_mib": mib, "num_cores": len(os.sched_getaffinity(0)), "load": os.getloadavg()[0]}
    if arguments.json:
        print_json({name: round(value, 3) for name, value in found.items()})
        return
    rate = found["num_rows"] / found["seconds"]
    print(f"{found['num_rows']:,} rows, {mib:.0f} MiB of JPEG: {found['seconds']:.1f} s, {rate:.0f} rows/s")
    print(
        f"bad rows: {found['num_bad']}; largest process {found['peak_mib']:.0f} MiB; load {found['load']:.1f}"
    )
    print(f"target: under {TARGET_S:.0f} s for 10,000 rows on 2 cores")


if __name__ == "__main__":
    main()
