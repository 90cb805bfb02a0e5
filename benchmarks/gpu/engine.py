"""Stage 5: vLLM beside the trainer: start, parity in both types, and an update in the middle of requests.

Three steps of GRPO in float32 and in bfloat16, each batch held to the parity bounds of a run. Then an engine
alone loads other weights while it generates: tokens of requests that saw both must be those of their own
version's weights, to the bound of float32 (in_flight.py).
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import stage

NUM_STEPS = 3
PARITY = ("parity/max_abs_logprob_diff", "parity/p999_abs_logprob_diff", "parity/mean_abs_logprob_diff")
TOLERANCE = 1e-3
"""In nats, of float32."""


@dataclass(frozen=True)
class Size:
    """The model, of weight_sync.py's, and the completions of a step."""

    model: str
    overrides: tuple[str, ...]


FULL = Size("200m", ())
TINY = Size("tiny", ("rollout.prompts_per_step=2", "rollout.group_size=4"))


def measure(options: stage.Options) -> stage.Verdict:
    stage.require_gpus(1, options)
    stage.require_packages("ray", "vllm", "deepspeed")
    from in_flight import update_in_flight
    from short_run import build_model
    from weight_sync import SIZES

    size = TINY if options.tiny else FULL
    figures: dict[str, Any] = {}
    faults: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        model = build_model(Path(folder) / "model", **SIZES[size.model])
        for dtype in ("float32", "bfloat16"):
            figures[dtype] = parity(model, Path(folder), dtype, size)
            faults += faults_of(dtype, figures[dtype], options.device)
        figures["update"] = update = update_in_flight(model, Path(folder))
    faults += faults_of_update(update)
    worst, mean = (figures[dtype][name] for dtype, name in (("float32", PARITY[0]), ("bfloat16", PARITY[2])))
    words = (
        f"parity to {worst:.1e} nats in float32, {mean:.1e} on average in bfloat16; an update of "
        f"{update['mib']:.0f} MiB stopped {update['num_requests']} requests for {update['pause_ms']:.0f} ms"
    )
    return stage.Verdict.of(words, faults, figures)


def parity(model: Path, folder: Path, dtype: str, size: Size) -> dict[str, Any]:
    """One run's start, device, and largest differences; a run stops by itself if they are out of bounds."""
    from short_run import config_of, short_run

    overrides = (f"model.dtype={dtype}", f"num_steps={NUM_STEPS}", *size.overrides)
    summary, steps = short_run(config_of(model, folder, dtype, *overrides))
    return {
        "device": summary["device"],
        "seconds_by_phase": summary["seconds_by_phase"],
        "num_steps": len(steps),
        "grad_norms": [step["optim/grad_norm"] for step in steps],
        **{name: max(step[name] for step in steps) for name in PARITY},
    }


def faults_of(dtype: str, found: dict[str, Any], device: str) -> list[str]:
    """What is wrong with a run that has ended well."""
    faults = []
    if found["num_steps"] != NUM_STEPS:
        faults.append(f"{dtype}: {found['num_steps']} steps in place of {NUM_STEPS}")
    if not all(norm > 0 for norm in found["grad_norms"]):  # nan too
        faults.append(f"{dtype}: gradient norms {found['grad_norms']}: parity was not tried on new weights")
    if device == "cuda" and "CPU" in found["device"]:
        faults.append(f"{dtype}: the engines ran on {found['device']}")
    return faults


def faults_of_update(found: dict[str, Any]) -> list[str]:
    """What is wrong with an update in the middle of requests."""
    if not found["num_requests"]:
        return ["the update: no request saw both versions; it came too early or too late"]
    faults = []
    for version, errors in enumerate(found["versions"]):
        if not errors["own"] <= TOLERANCE:  # nan too
            faults.append(f"the update: tokens of version {version} are off by {errors['own']:.1e} nats")
        if not errors["other"] > 10 * TOLERANCE:
            faults.append(f"the update: version {version} cannot be told from the other")
    return faults


if __name__ == "__main__":
    stage.run(measure)
