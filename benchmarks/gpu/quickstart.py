"""Stage 6: `vlrl quickstart` as a user runs it: warm start, GRPO, held-out accuracy, report."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import stage
import yaml
from short_run import ROOT

COMMAND = "import sys; from vlrl.cli.main import main; sys.exit(main())"
CONFIGS = ("quickstart_sft.yaml", "quickstart.yaml")


def measure(options: stage.Options) -> stage.Verdict:
    stage.require_gpus(1, options)
    stage.require_packages("ray", "vllm", "deepspeed")
    with tempfile.TemporaryDirectory() as folder:
        configs = shortened(Path(folder) / "configs") if options.tiny else ROOT / "configs"
        arguments = ["quickstart", "--json", "--out", f"{folder}/quickstart", "--configs", str(configs)]
        command = [sys.executable, "-c", COMMAND, *arguments]
        child = subprocess.run(command, stdout=subprocess.PIPE, text=True)
        lines = child.stdout.splitlines()
        if not lines:
            return stage.Verdict("failed", f"vlrl quickstart ended with status {child.returncode}", {})
        summary = json.loads(lines[-1])
        report = (Path(folder) / "quickstart" / "report.html").exists()
    return judged(summary, child.returncode, report, options.device)


def judged(summary: dict[str, Any], status: int, report: bool, device: str) -> stage.Verdict:
    """A quickstart's verdict: it must end well, reach its goal, write its report, and use the GPU."""
    faults = (
        [] if status == 0 else [f"vlrl quickstart ended with status {status}: {summary.get('error', '')}"]
    )
    if summary.get("target_reached") is False:
        faults.append(f"{summary['heldout_accuracy_after']:.3f} is below {summary['target_accuracy']}")
    if not report:
        faults.append("there is no report.html")
    if device == "cuda" and "CPU" in summary.get("device", "CPU"):
        faults.append(f"it ran on {summary.get('device')}")
    before, after = (summary.get(f"heldout_accuracy_{when}", 0.0) for when in ("before", "after"))
    steps, seconds = summary.get("num_steps"), summary.get("seconds_total", 0.0)
    words = f"{before:.3f} before, {after:.3f} after {steps} steps of GRPO, {seconds:.0f} s"
    return stage.Verdict.of(words, faults, summary)


def shortened(folder: Path) -> Path:
    """The quickstart's configs with two steps, few rows and no goal."""
    folder.mkdir()
    for name in CONFIGS:
        tree = yaml.safe_load((ROOT / "configs" / name).read_text())
        tree["num_steps"] = 2
        if "eval" in tree:
            tree["eval"] = {"num_samples": 4}
            tree["rollout"] |= {"prompts_per_step": 2, "group_size": 4}
        (folder / name).write_text(yaml.safe_dump(tree))
    return folder


if __name__ == "__main__":
    stage.run(measure)
