"""The first hour on a GPU: what has only been tried on CPUs, in stages of under ten minutes.

    python benchmarks/gpu/check.py [STAGE ...] [--tiny] [--out FOLDER]

    facts      GPU, driver, memory and versions; the rates of a bfloat16 product and of memory
    attention  FlexAttention in bfloat16 against blocks: errors, time, compilations at 12 lengths
    agreement  the trainer against transformers: logprobs and gradients, float32 and bfloat16
    training   Qwen2.5-VL-3B's shape: memory against `vlrl plan`, MFU, tokens a second; text and images
    engine     vLLM and the trainer: parity in both types, an update in the middle of requests
    quickstart the whole quickstart, whose goal is 0.90
    placement  eight GPUs: every one has a rank and an engine

Each stage is a process of its own; it prints one line and writes FOLDER/STAGE.json and FOLDER/STAGE.log. A
stage that this machine cannot run is skipped with the reason. Facts to training need neither Ray nor vLLM.
With --tiny all stages run on a CPU too, at sizes whose figures say nothing. The exit status is 1 if a stage
failed.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from stage import Options, Verdict

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
STAGES = ("facts", "attention", "agreement", "training", "engine", "quickstart", "placement")
LIMIT_S = 600.0
"""Of a stage."""
GRACE_S = 30.0
"""For a stage over its limit to stop its engines."""


def parse_arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("stages", nargs="*", metavar="STAGE", help="default: all, in this order")
    parser.add_argument("--tiny", action="store_true", help="sizes for a CPU")
    parser.add_argument("--out", type=Path, default=ROOT / "runs" / "gpu_check")
    parser.add_argument("--limit-s", type=float, default=LIMIT_S, help="of a stage (default %(default)s)")
    options = parser.parse_args(argv)
    if unknown := [name for name in options.stages if name not in STAGES]:
        parser.error(f"no such stage: {', '.join(unknown)}; there are {', '.join(STAGES)}")
    return options


def run_stage(name: str, options: Options, limit_s: float) -> Verdict:
    """Run one stage in a process of its own."""
    options.out.mkdir(parents=True, exist_ok=True)
    result, log = (options.out / f"{name}.{kind}" for kind in ("json", "log"))
    result.unlink(missing_ok=True)
    command = [sys.executable, str(HERE / f"{name}.py"), "--out", str(options.out)]
    begin = time.perf_counter()
    with log.open("w") as stream:
        child = subprocess.Popen(
            [*command, *(["--tiny"] if options.tiny else [])],
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=subprocess.STDOUT,
            env=environment(),
            cwd=ROOT,
            start_new_session=True,
        )
        try:
            late = not ended(child, limit_s)
        finally:
            stop(child)
    if result.exists() and not late:
        value = json.loads(result.read_text())
        return Verdict(value["status"], value["verdict"], value["figures"])
    words = f"took longer than {limit_s:g} s" if late else f"its process ended with {child.returncode}"
    verdict = Verdict("failed", f"{words}; see {log}", {})
    verdict.write(name, options, time.perf_counter() - begin)
    return verdict


def environment() -> dict[str, str]:
    """This process's, with vlrl and the benchmarks on the path, and nothing asked of the network."""
    path = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), str(ROOT), str(HERE.parent)]))
    offline = {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
    return {**os.environ, **offline, "PYTHONPATH": path, "PYTHONUNBUFFERED": "1"}


def ended(child: subprocess.Popen[bytes], limit_s: float) -> bool:
    """Wait for a process; whether it ended in time."""
    try:
        child.wait(limit_s)
    except subprocess.TimeoutExpired:
        return False
    return True


def stop(child: subprocess.Popen[bytes]) -> None:
    """Let a stage that still runs end as after Ctrl-C, so that Ray stops too; then make sure."""
    for number, patience_s in ((signal.SIGINT, GRACE_S), (signal.SIGKILL, None)):
        if child.poll() is not None:
            return
        os.killpg(child.pid, number)
        if patience_s is None or ended(child, patience_s):
            child.wait()
            return


def main(argv: Sequence[str] | None = None) -> int:
    """Run the stages; 1 if one failed."""
    arguments = parse_arguments(argv)
    options = Options(arguments.tiny, arguments.out.resolve())
    failed = 0
    for name in arguments.stages or STAGES:
        begin = time.perf_counter()
        verdict = run_stage(name, options, arguments.limit_s)
        failed += verdict.status == "failed"
        print(
            f"{name:<10} {verdict.status:<7} {time.perf_counter() - begin:4.0f} s  {verdict.words}",
            flush=True,
        )
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
