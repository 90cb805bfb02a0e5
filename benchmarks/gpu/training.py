"""Stage 4: a rank's step at Qwen2.5-VL-3B's shape, random weights: memory against the plan, MFU, tokens/s.

Eight groups of eight completions of 512 tokens on prompts of 1,152 tokens, of text alone and with an image of
1,024 tokens, in bfloat16, every weight trained, activations recomputed. MFU counts what a step cannot do
without (one forward and two backward passes, each shared token once, no recomputing) over the data sheet's
rate, or over a measured product's where there is none. `row_tokens_per_s` counts a prompt with every
completion, as trainers without prefix trees do. Of the time of a whole step of RL this is the trainer's part.
"""

from __future__ import annotations

import tempfile
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import stage
import torch
from cases import CASES, Case
from one_rank import in_own_process
from one_rank import measure as measure_rank
from peak import nominal_rate
from plan_accuracy import expected_bytes, planned
from train_shapes import build_model

from vlrl.config import Config, parse_config
from vlrl.plan.duration import matmul_rate

GIB = 2**30
CONTEXT_BYTES = 2 * GIB
"""Left free beside what the plan needs: the CUDA context, and what the allocator cannot use."""


@dataclass(frozen=True)
class Size:
    """A case, and what is asked of its figures.

    Attributes:
        case: with images; the text case has as many tokens.
        micro_batches: most tokens of one; the first that the plan fits into the GPU is taken.
        steps: timed ones.
        memory_ratio: bounds of predicted over measured memory.
        min_mfu: EasyR1's is 0.081 (Qwen2.5-VL-3B, 8 H100).
    """

    case: Case
    micro_batches: tuple[int, ...]
    steps: int
    memory_ratio: tuple[float, float]
    min_mfu: float


FULL = Size(replace(CASES["d"], shortest=1.0), (16384, 8192, 4096), 3, (0.92, 1.25), 0.081)
TINY = Size(
    replace(
        FULL.case, shape="tiny", groups=1, group_size=2, image_tokens=16, text_tokens=40, completion_tokens=8
    ),
    (256,), 1, (0.5, 2.0), 0.0,
)  # fmt: skip


def measure(options: stage.Options) -> stage.Verdict:
    stage.require_gpus(1, options)
    stage.require_packages("deepspeed")
    size = TINY if options.tiny else FULL
    text = replace(size.case, images=0, text_tokens=size.case.text_tokens + size.case.image_tokens)
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        build_model(size.case.shape, Path(folder), getattr(torch, size.case.dtype))
        torch.cuda.empty_cache()  # what building took is the rank's
        for name, case in (("text", text), ("images", size.case)):
            figures[name] = of_case(Path(folder), case, size, options.device)
    faults = [f"{name}: {fault}" for name, found in figures.items() for fault in faults_of(found, size)]
    words = "; ".join(f"{name}: {line(found)}" for name, found in figures.items())
    return stage.Verdict.of(words, faults, figures)


def of_case(folder: Path, case: Case, size: Size, device: str) -> dict[str, Any]:
    """One case: its plan, its figures, and what they come to."""
    rate = matmul_rate(device, case.dtype)
    config, expected = fitting(folder, case, size, device, rate)
    measured = in_own_process(measure_rank, config, case, size.steps)
    nominal = nominal_rate(torch.cuda.get_device_name()) if device == "cuda" else None
    written = measured.write_seconds
    return {
        "max_tokens_per_micro_batch": config.trainer.max_tokens_per_micro_batch,
        "predicted_gib": expected / GIB,
        "measured_gib": measured.peak_bytes / GIB,
        "memory_ratio": expected / measured.peak_bytes,
        "mfu": measured.flops / measured.seconds / (nominal or rate),
        "mfu_against": "data sheet" if nominal else "measured product",
        "tokens_per_s": measured.num_tokens / measured.seconds,
        "row_tokens_per_s": measured.num_row_tokens / measured.seconds,
        "write_gb_per_s": model_bytes(folder) / written / 1e9 if written else None,
        "measured": asdict(measured),
    }


def fitting(folder: Path, case: Case, size: Size, device: str, rate: float) -> tuple[Config, int]:
    """The config with the largest micro-batch that the plan fits into this GPU, and the bytes it predicts.

    Raises:
        Skipped: if none fits.
    """
    room = float("inf")
    if device == "cuda":
        room = torch.cuda.mem_get_info()[0] - CONTEXT_BYTES
    expected = 0
    for max_tokens in size.micro_batches:
        config = config_of(folder, case, max_tokens)
        expected = expected_bytes(planned(config, case, device, rate), device)
        if expected <= room:
            return config, expected
    raise stage.Skipped(f"the plan needs {expected / GIB:.0f} GiB, {room / GIB:.0f} GiB of the GPU are free")


def config_of(folder: Path, case: Case, max_tokens: int) -> Config:
    longest = case.text_tokens + case.images * case.image_tokens + case.completion_tokens
    return parse_config(
        {
            "run": {"dir": str(folder)},
            "model": {"path": str(folder), "dtype": case.dtype},
            "data": {"train": {"name": "digit_sum"}},
            "rollout": {
                "prompts_per_step": case.groups,
                "group_size": case.group_size,
                "max_tokens": case.completion_tokens,
            },
            "trainer": {
                "max_tokens_per_micro_batch": max_tokens,
                "gradient_checkpointing": case.checkpointing,
            },
            "generator": {"max_model_len": longest},
        }
    )


def model_bytes(folder: Path) -> int:
    """Bytes of a model folder's weights."""
    return sum(file.stat().st_size for file in folder.glob("*.safetensors"))


def faults_of(found: dict[str, Any], size: Size) -> list[str]:
    """What is wrong with one case's figures."""
    faults = []
    least, most = size.memory_ratio
    if not least <= found["memory_ratio"] <= most:
        faults.append(
            f"{found['predicted_gib']:.1f} GiB predicted, {found['measured_gib']:.1f} measured: "
            f"{found['memory_ratio']:.2f} is not in {least:g} to {most:g}"
        )
    if not found["mfu"] > size.min_mfu:  # nan too
        faults.append(f"MFU {found['mfu']:.1%}, not above {size.min_mfu:.1%}")
    return faults


def line(found: dict[str, Any]) -> str:
    return (
        f"MFU {found['mfu']:.1%}, {found['row_tokens_per_s']:,.0f} tokens/s as rows, "
        f"{found['measured_gib']:.1f} GiB of {found['predicted_gib']:.1f} planned"
    )


if __name__ == "__main__":
    stage.run(measure)
