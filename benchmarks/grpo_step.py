"""Seconds of a GRPO step on vlrl and on TRL's GRPOTrainer, in one run: `make bench`.

    .venv/bin/python benchmarks/grpo_step.py [--steps N] [--blocks B] [--json]

Both sides get the same model files, rows, number of completions and of drawn tokens, optimizer, float32 and
cores. Each is a process of its own that stays up; they take turns, block by block, so that whatever else the
machine does hits both, and the idle one must sleep. Starting up and the first steps are not in the medians.
With --json the last line is one object: `ratio` (TRL seconds / vlrl seconds), both medians, and the details.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

from step_floor import Work, floor, matmul_rate, read_model_config
from step_job import BenchmarkError, Job
from step_report import SIDES, check_equal_work, ratios_by_block, report, summarize

ROOT = Path(__file__).resolve().parent.parent
HERE = Path(__file__).resolve().parent
IMAGE_SIZE = 56
TOKEN_PIXELS, PATCH_PIXELS = 28, 14


def parse_arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line; exits with status 2 and a message for values that make no sense."""
    parser = argparse.ArgumentParser(description="Time a GRPO step on vlrl and on TRL, side by side.")
    parser.add_argument("--steps", type=int, default=10, help="steps of one block (default %(default)s)")
    parser.add_argument("--blocks", type=int, default=6, help="blocks of each side (default %(default)s)")
    parser.add_argument("--warmup", type=int, default=5, help="steps of each side not counted")
    parser.add_argument("--prompts", type=int, default=8, help="prompts of a step (default %(default)s)")
    parser.add_argument("--group-size", type=int, default=8, help="completions of a prompt, n")
    parser.add_argument("--completion-tokens", type=int, default=16, help="tokens of every completion")
    parser.add_argument("--threads", type=int, default=2, help="cores both sides may use, in turns")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true", help="last line of stdout: one JSON object")
    parser.add_argument("--keep", type=Path, help="a folder for model, rows and logs, kept afterwards")
    parser.add_argument("--only", choices=SIDES, help="run one side alone: no ratio")
    parser.add_argument("--trl-python", type=Path, default=ROOT / ".venv-trl" / "bin" / "python")
    options = parser.parse_args(argv)
    least = {"steps": 1, "blocks": 1, "warmup": 1, "prompts": 1, "group_size": 2, "completion_tokens": 2}
    for name, minimum in {**least, "threads": 1}.items():
        if getattr(options, name) < minimum:
            parser.error(f"--{name.replace('_', '-')} must be at least {minimum}")
    if options.only != "vlrl" and not options.trl_python.exists():
        parser.error(f"{options.trl_python} is not there; `make trl-env` makes TRL's environment")
    return options


def prepare(options: argparse.Namespace, folder: Path) -> Job:
    """Write the model and the rows that both sides read."""
    import numpy as np
    from transformers.utils import logging

    from vlrl.envs.visual.digit_sum import INSTRUCTION, DigitSum
    from vlrl.tiny import build_tiny_qwen2_5_vl

    logging.disable_progress_bar()
    max_steps = options.warmup + options.steps * options.blocks
    rows = DigitSum(num_rows=max_steps * options.prompts, image_size=IMAGE_SIZE)
    contents = [rows[i]["messages"][0]["content"] for i in range(len(rows))]
    images = [[part["image"] for part in content if part["type"] == "image"] for content in contents]
    np.savez(folder / "rows.npz", images=np.asarray(images))
    corpus = [INSTRUCTION, *(str(rows[i]["target"]) for i in range(min(256, len(rows))))]
    model = build_tiny_qwen2_5_vl(folder / "model", corpus, seed=options.seed)
    job = Job(
        folder=str(folder),
        model=str(model),
        rows=str(folder / "rows.npz"),
        text=INSTRUCTION,
        prompts=options.prompts,
        group_size=options.group_size,
        completion_tokens=options.completion_tokens,
        lr=2e-4,
        betas=(0.9, 0.95),
        max_grad_norm=1.0,
        num_rows=len(rows),
        max_steps=max_steps,
        threads=options.threads,
        seed=options.seed,
    )
    job.write()
    return job


class Side:
    """One side's process: started once, told to run blocks, asleep in between."""

    def __init__(self, name: str, python: Path, job: Job) -> None:
        self.name = name
        self.blocks: list[dict[str, Any]] = []
        self._log = Path(job.folder) / f"{name}.log"
        environment = {
            **os.environ,
            "OMP_NUM_THREADS": str(job.threads),
            "CUDA_VISIBLE_DEVICES": "",
            "HF_HUB_OFFLINE": "1",
            "TOKENIZERS_PARALLELISM": "false",
        }
        command = [str(python), str(HERE / f"{name}_step.py"), str(Path(job.folder) / "job.json")]
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=environment,
                cwd=ROOT,
                start_new_session=True,
            )
        self.start_up: dict[str, float] = self._receive()["start_up"]

    @property
    def pid(self) -> int:
        """Of the process that was started."""
        return self._process.pid

    def run(self, steps: int, *, counted: bool = True) -> None:
        """Run a block and keep what it measured."""
        _pipe(self._process.stdin).write(f"{steps}\n")
        _pipe(self._process.stdin).flush()
        block = self._receive()["block"]
        if counted:
            self.blocks.append(block)

    def close(self) -> None:
        """Let it end by itself, then make sure."""
        _pipe(self._process.stdin).close()
        try:
            self._process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _receive(self) -> dict[str, Any]:
        line = _pipe(self._process.stdout).readline()
        if not line:
            tail = "".join(self._log.read_text(errors="replace").splitlines(keepends=True)[-15:])
            raise BenchmarkError(f"{self.name}'s process ended (its log's last lines):\n{tail}")
        message: dict[str, Any] = json.loads(line)
        return message


def _pipe(stream: IO[str] | None) -> IO[str]:
    if stream is None:
        raise BenchmarkError("the process was started without pipes")
    return stream


def cpu_seconds(root_pid: int) -> float:
    """CPU time used so far by a process and all its living descendants; 0 where there is no /proc."""
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rsplit(")", 1)[1].split()
        except OSError:  # it ended meanwhile
            continue
        pid = int(stat.parent.name)
        parents[pid], ticks[pid] = int(fields[1]), int(fields[11]) + int(fields[12])
    family, added = {root_pid}, True
    while added:
        added = False
        for pid, parent in parents.items():
            if parent in family and pid not in family:
                family.add(pid)
                added = True
    return sum(ticks.get(pid, 0) for pid in family) / os.sysconf("SC_CLK_TCK")


def alternate(sides: Sequence[Side], options: argparse.Namespace) -> dict[str, float]:
    """Run all blocks in turns; returns the share of a core each side used while it was to be asleep."""
    idle_cpu = dict.fromkeys((side.name for side in sides), 0.0)
    idle_wall = dict.fromkeys(idle_cpu, 1e-9)
    for index in range(options.blocks):
        # a b, b a, a b, …: a drift of the machine's speed hits both alike
        for side in sides if index % 2 == 0 else list(reversed(sides)):
            asleep = [other for other in sides if other is not side]
            before = {other.name: cpu_seconds(other.pid) for other in asleep}
            side.run(options.steps)
            for other in asleep:
                idle_cpu[other.name] += cpu_seconds(other.pid) - before[other.name]
                idle_wall[other.name] += sum(side.blocks[-1]["seconds"])
    return {name: idle_cpu[name] / idle_wall[name] for name in idle_cpu}


def work_of(job: Job, prompt_tokens: int) -> Work:
    """The step's sizes, for its floor."""
    return Work(
        prompts=job.prompts,
        group_size=job.group_size,
        prompt_tokens=prompt_tokens,
        completion_tokens=job.completion_tokens,
        pictures_per_prompt=2,
        patches=(IMAGE_SIZE // PATCH_PIXELS) ** 2,
        image_tokens=(IMAGE_SIZE // TOKEN_PIXELS) ** 2,
    )


def measure_floor(job: Job, prompt_tokens: int) -> dict[str, float]:
    """The floor at the rate of a matmul as large as a step's widest, with the job's threads."""
    import torch

    torch.set_num_threads(job.threads)
    config, work = read_model_config(job.model), work_of(job, prompt_tokens)
    text = config["text_config"]
    rate = matmul_rate(work.tree_tokens, text["hidden_size"], text["intermediate_size"])
    return floor(config, work, rate)


def compare(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Run everything and return the result."""
    job = prepare(options, folder)
    pythons = {"vlrl": Path(sys.executable), "trl": options.trl_python}
    names = [options.only] if options.only else list(SIDES)
    sides: list[Side] = []
    try:
        for name in names:
            say(f"starting {name}")
            sides.append(Side(name, pythons[name], job))
            sides[-1].run(options.warmup, counted=False)
        say(f"{options.blocks} blocks of {options.steps} steps each")
        idle = alternate(sides, options)
    finally:
        for side in sides:
            side.close()
    blocks = {side.name: side.blocks for side in sides}
    prompt_tokens = check_equal_work(job, options.steps, blocks)
    result: dict[str, Any] = {
        side.name: {**summarize(side.blocks), "start_up": side.start_up, "idle_cores": idle[side.name]}
        for side in sides
    }
    if not options.only:
        result["ratio"] = result["trl"]["median"] / result["vlrl"]["median"]
        result["ratio_by_block"] = ratios_by_block(blocks)
    result |= {f"{name}_seconds": result[name]["median"] for name in names}
    result["floor"] = measure_floor(job, prompt_tokens)
    sizes = ("prompts", "group_size", "completion_tokens", "threads", "lr", "seed")
    result["job"] = {**{name: getattr(job, name) for name in sizes}, "prompt_tokens": prompt_tokens}
    return result


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main(argv: Sequence[str] | None = None) -> int:
    options = parse_arguments(argv)
    cores = sorted(os.sched_getaffinity(0))[: options.threads]
    if len(cores) < options.threads:
        say(f"only {len(cores)} cores are to be had; --threads {options.threads} would be unfair to both")
        return 2
    os.sched_setaffinity(0, cores)
    try:
        with tempfile.TemporaryDirectory(prefix="grpo_step-") as temporary:
            folder = (options.keep or Path(temporary)).resolve()
            folder.mkdir(parents=True, exist_ok=True)
            result = compare(options, folder)
    except BenchmarkError as error:
        say(f"grpo_step: {error}")
        return 1
    print(report(result))
    if options.json:
        print(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
