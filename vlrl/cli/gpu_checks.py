"""What a machine with NVIDIA GPUs needs beside its packages."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

from vlrl.cli.package_checks import INSTALL, Probe, probe
from vlrl.machine.checks import check_driver, check_toolkit
from vlrl.machine.nvidia import driver_cuda, driver_version, toolkit_problem
from vlrl.machine.result import CheckResult

TRITON_PROBE = """
import json
from triton.runtime import driver
print(json.dumps({"target": str(driver.active.get_current_target())}))  # compiles its link to the driver
"""
RUNNER_PROBE = """
import json
from vllm.config import VllmConfig
from vllm.triton_utils import HAS_TRITON
print(json.dumps({"v2": VllmConfig().use_v2_model_runner, "triton": HAS_TRITON}))
"""


def check_cuda(pool: ThreadPoolExecutor, torch: Probe, locked: str) -> list[CheckResult]:
    """What programs for the GPU need; nothing to say where torch is a CPU build.

    Args:
        pool: where other processes are waited for, side by side.
        torch: what torch says of itself.
        locked: version of CUDA to be installed, where there is no torch yet.
    """
    if not torch.ok:
        return [check_driver(driver_version(), driver_cuda(), locked)]
    if (cuda := torch.value()["build"]) is None:
        return []
    triton, runner = pool.submit(probe, TRITON_PROBE), pool.submit(probe, RUNNER_PROBE)
    return [
        check_driver(driver_version(), driver_cuda(), cuda),
        check_triton(triton.result()),
        check_runner(runner.result()),
        check_toolkit(toolkit_problem(os.environ), cuda),
    ]


def check_gpu(has_gpu: bool, shown: list[str], result: Probe) -> CheckResult:
    """Driver and torch agree on what there is; no GPU at all is fine, for small models.

    Args:
        has_gpu: whether there is one.
        shown: by nvidia-smi, which a container may lack.
        result: what torch says of itself.
    """
    if not has_gpu:
        return CheckResult(
            "GPU", "ok", "none with an NVIDIA driver: everything runs on the CPU, small models only"
        )
    torch = result.value()
    names = shown or torch.get("names") or ["NVIDIA GPU"]
    found = f"{len(names)} × {names[0]}"
    if torch.get("cuda"):
        return CheckResult("GPU", "ok", found)
    if torch and not torch["build"]:
        return CheckResult("GPU", "warning", f"{found}, but torch is a CPU build", INSTALL)
    remedy = "check CUDA_VISIBLE_DEVICES, and that the driver is new enough for torch's CUDA"
    return CheckResult("GPU", "failed", f"{found}, but torch.cuda.is_available() is False", remedy)


def check_triton(result: Probe) -> CheckResult:
    """Triton compiles for the GPU: without it engines do not start, and the trainer has no FlexAttention."""
    if result.ok:
        return CheckResult("Triton", "ok", f"compiles for {result.value()['target']}")
    return CheckResult(
        "Triton", "failed", f"does not work: {result.text}", "see the lines of the driver and the C compiler"
    )


def check_runner(result: Probe) -> CheckResult:
    """Which of its two model runners vLLM chooses here."""
    if not result.ok:
        return CheckResult("vLLM runner", "failed", f"vLLM does not start: {result.text}", INSTALL)
    if result.value()["v2"]:
        return CheckResult("vLLM runner", "ok", "V2")
    reason = "VLLM_USE_V2_MODEL_RUNNER=0" if result.value()["triton"] else "vLLM finds no working Triton"
    return CheckResult(
        "vLLM runner", "warning", f"V1, because {reason}", "vLLM has deprecated V1; remove the reason"
    )
