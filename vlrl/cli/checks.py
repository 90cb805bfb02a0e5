"""Checks of vlrl's dependencies and of the machine, without importing an engine into this process."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from vlrl.cli.gpu_checks import check_cuda, check_gpu
from vlrl.cli.package_checks import (
    TORCH_PROBE,
    check_import,
    check_package,
    check_room_for_packages,
    check_torch,
    check_vllm,
    probe,
)
from vlrl.config.options import RayConfig
from vlrl.machine.checks import GIB, check_compiler, check_python, check_system
from vlrl.machine.compiler import TRITON, compile_stub
from vlrl.machine.locks import lock_facts
from vlrl.machine.nvidia import gpus, has_gpu
from vlrl.machine.result import CheckResult
from vlrl.plan.model_config import hub_trouble
from vlrl.weights.segments import orphans


def run_checks(run_dir: Path) -> list[CheckResult]:
    """Every check, in the order of a first set-up; takes a few seconds.

    Args:
        run_dir: where runs are to be written, for the free disk.
    """
    on_gpu = has_gpu()
    facts = lock_facts("cuda" if on_gpu else "cpu")
    with ThreadPoolExecutor() as pool:  # what waits for another process or machine, side by side
        torch = pool.submit(probe, TORCH_PROBE)
        torchvision = pool.submit(probe, "import torchvision.ops")
        decord = pool.submit(probe, "import decord")
        hub = pool.submit(check_hub, os.environ)
        names = pool.submit(gpus)
        stub = pool.submit(compile_stub, TRITON)
        of_gpu = check_cuda(pool, torch.result(), facts.cuda) if on_gpu else []
    return [
        check_python(sys.version_info[:3], facts),
        check_system(platform.libc_ver(), platform.machine(), facts),
        *check_room_for_packages(Path(sys.prefix), facts),
        check_torch(torch.result()),
        check_import("torchvision", torchvision.result()),
        check_package("transformers"),
        check_vllm(has_driver=on_gpu),
        check_package("deepspeed"),
        check_package("ray"),
        check_import("decord", decord.result()),
        check_package("qwen-vl-utils"),
        check_gpu(on_gpu, names.result(), torch.result()),
        *of_gpu,
        check_memory(available_memory()),
        check_shared_memory(Path("/dev/shm")),
        check_disk(run_dir),
        check_compiler(stub.result(), on_gpu=on_gpu),
        hub.result(),
    ]


def available_memory() -> int:
    """Bytes that this process and its children can still take, a container's limit included."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    free = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    limit, used = Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")
    if limit.is_file() and used.is_file() and limit.read_text().strip() != "max":
        free = min(free, int(limit.read_text()) - int(used.read_text()))
    return free


def check_memory(free: int) -> CheckResult:
    """Enough for the quickstart: an engine, a rank and the driver take about 5 GiB together."""
    found = f"{free / GIB:.1f} GiB free"
    if free < 5 * GIB:
        return CheckResult("memory", "failed", found, "the quickstart takes 5 GiB; stop other programs")
    return CheckResult("memory", "ok", found)


def check_shared_memory(shm: Path) -> CheckResult:
    """Room for Ray's object store and the weights on their way, and nothing left behind by a killed run."""
    name, free = "shared memory", shutil.disk_usage(shm).free
    store = RayConfig().object_store_gib
    found = f"{free / GIB:.1f} GiB free in {shm}"
    grow = "start the container with a larger --shm-size, for instance --shm-size=8g"
    if free < store * GIB:
        return CheckResult(name, "failed", found, f"ray.object_store_gib={store} does not fit; {grow}")
    if left := orphans(shm):
        size = sum(p.stat().st_size for p in left) / GIB
        names = " ".join(str(p) for p in left)
        return CheckResult(
            name, "warning", f"{found}, {size:.2f} GiB held by runs that were killed", f"rm {names}"
        )
    if free < (store + 1) * GIB:
        return CheckResult(name, "warning", found, f"a model's weights pass through it whole; {grow}")
    return CheckResult(name, "ok", found)


def check_disk(run_dir: Path) -> CheckResult:
    """Room for checkpoints, which hold a model and twice its size in optimizer states."""
    folder = run_dir.resolve()
    while not folder.exists():
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    found = f"{free / GIB:.1f} GiB free in {run_dir}"
    if not os.access(folder, os.W_OK):
        return CheckResult(
            "disk", "failed", f"{folder} cannot be written", "set run.dir to a folder of yours"
        )
    if free < GIB:
        return CheckResult("disk", "failed", found, "free some space, or set run.dir to another disk")
    if free < 10 * GIB:
        return CheckResult(
            "disk", "warning", found, "enough for a tiny model; a checkpoint of 3B takes 40 GiB"
        )
    return CheckResult("disk", "ok", found)


def check_hub(environment: Mapping[str, str]) -> CheckResult:
    """Whether models can be fetched by name."""
    name = "Hugging Face"
    endpoint = environment.get("HF_ENDPOINT", "https://huggingface.co")
    if not (trouble := hub_trouble(environment)):
        return CheckResult(name, "ok", f"{endpoint} answers")
    if "HF_HUB_OFFLINE" in trouble:
        return CheckResult(
            name, "ok", "offline (HF_HUB_OFFLINE is set): models from folders and from the cache"
        )
    remedy = "give model.path a folder, or set HF_HUB_OFFLINE=1 to use the cache without waiting"
    return CheckResult(name, "warning", trouble, remedy)
